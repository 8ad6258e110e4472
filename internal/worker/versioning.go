package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"

	"github.com/ironlot/ironlot/internal/fault"
)

// Versioning lets workers of several builds run side by side: every run stays
// with the build that it was started on. The zero value is off.
type Versioning struct {
	Deployment string // name of the worker deployment; empty: off
	BuildID    string // of this build
	// MakeCurrent makes new runs start on this build once it takes work.
	// Without it somebody tells Temporal so, and until then no run reaches
	// the worker.
	MakeCurrent bool
}

// Check refuses half a setting.
func (v Versioning) Check() error {
	if v.Deployment == "" && v.MakeCurrent {
		return fault.Operator("name the worker deployment, or leave it out", "there is no worker deployment in which this build could become the current one")
	}
	if v.Deployment != "" && v.BuildID == "" {
		return fault.Operator("give it a build ID", "the build of the worker deployment %s has no ID", v.Deployment)
	}
	return nil
}

// options pin a run to its build: a run lasts until its node is Ready or a
// person has decided, and its history never meets other code.
func (v Versioning) options() sdk.DeploymentOptions {
	if v.Deployment == "" {
		return sdk.DeploymentOptions{}
	}
	return sdk.DeploymentOptions{
		UseVersioning:             true,
		Version:                   sdk.WorkerDeploymentVersion{DeploymentName: v.Deployment, BuildID: v.BuildID},
		DefaultVersioningBehavior: workflow.VersioningBehaviorPinned,
	}
}

// currentWithin bounds how long Temporal may take to know a new build.
const currentWithin = time.Minute

// announce makes the build current, or says how that is done.
func (v Versioning) announce(ctx context.Context, c client.Client, log *zap.Logger) error {
	if v.Deployment == "" {
		return nil
	}
	if !v.MakeCurrent {
		log.Info("new runs reach this build once it is the current one", zap.String("how",
			fmt.Sprintf("temporal worker deployment set-current-version --deployment-name %s --build-id %s", v.Deployment, v.BuildID)))
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, currentWithin)
	defer cancel()
	handle := c.WorkerDeploymentClient().GetHandle(v.Deployment)
	for {
		_, err := handle.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: v.BuildID})
		if err == nil {
			log.Info("new runs start on this build", zap.String("deployment", v.Deployment), zap.String("buildId", v.BuildID))
			return nil
		}
		if !unknownYet(err) || ctx.Err() != nil {
			return fmt.Errorf("the build %s of the worker deployment %s cannot be made the current one: %w", v.BuildID, v.Deployment, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// unknownYet: Temporal learns of a build from its first polls.
func unknownYet(err error) bool {
	notFound, early := new(serviceerror.NotFound), new(serviceerror.FailedPrecondition)
	return errors.As(err, &notFound) || errors.As(err, &early)
}
