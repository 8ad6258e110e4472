package talos

import (
	"context"
	"errors"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ironlot/ironlot/internal/fault"
)

// applyTimeout bounds one apply. Talos answers in a tenth of a second, or
// hangs when the config changes the network under the answer
// (github.com/siderolabs/talos/issues/8566).
const applyTimeout = 45 * time.Second

// Outcome is what is known after an apply.
type Outcome string

// The outcomes.
const (
	Accepted Outcome = "accepted" // the node said so
	Refused  Outcome = "refused"  // the node said no, or was never asked: nothing has changed
	Unknown  Outcome = "unknown"  // the answer was lost: look at the node before asking again
)

// Apply hands a machine config to a node in maintenance, once, without
// credentials: it never talks to a configured node. With Refused and Unknown
// comes a classified error; with Unknown it is Transient and the caller looks
// at the node's state. What Talos answers is never returned or logged, for it
// can hold the config; refusals are quoted without secrets.
func Apply(ctx context.Context, addr string, config []byte) (Outcome, error) {
	cfg, err := configloader.NewFromBytes(config)
	if err != nil || !cfg.CompleteForBoot() {
		return Refused, fault.Operator("render it again",
			"the machine config for %s is not complete and was not sent", addr)
	}
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	c, err := dialTLS(ctx, addr, anonymous())
	if alertOf(err) == alertCertificateRequired {
		return verdict(addr, config, err, err)
	}
	if err != nil {
		return Refused, fault.Retry("the Talos API on %s cannot be reached, the config was not sent: %w", addr, err)
	}
	defer func() { _ = c.Close() }()
	rpc, err := grpcOver(addr, once(c))
	if err != nil {
		return Refused, err
	}
	defer func() { _ = rpc.Close() }()

	_, err = machine.NewMachineServiceClient(rpc).ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{
		Data: config,
		// In maintenance, on an installed disk, Talos makes NO_REBOOT of it.
		Mode: machine.ApplyConfigurationRequest_AUTO,
	})
	if err == nil {
		return Accepted, nil
	}
	return verdict(addr, config, c.ended(), err)
}

// verdict tells whether a failed apply can have taken effect.
func verdict(addr string, config []byte, end, err error) (Outcome, error) {
	if alertOf(end) == alertCertificateRequired {
		return Refused, fault.Retry("the node at %s has a config already, this one was not taken: %w", addr, errConfigured)
	}
	answer := status.Convert(err)
	switch answer.Code() {
	case codes.InvalidArgument:
		return Refused, fault.Operator("correct the config and provision again",
			"Talos at %s refuses the machine config: %s", addr, redact(answer.Message(), config))
	case codes.FailedPrecondition:
		return Refused, fault.Retry("Talos at %s is busy with another config or a reboot: %s", addr, redact(answer.Message(), config))
	case codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return Refused, fault.Operator("check that the address is the server's and that it runs Talos 1.13",
			"%s does not take a config without credentials: %s", addr, answer.Code())
	default: // Unavailable, DeadlineExceeded, Canceled, Internal: it may have been taken
		return Unknown, fault.Retry("the answer to apply-config from %s was lost: %s", addr, answer.Code())
	}
}

// errConfigured marks the refusal of a node that has left maintenance.
var errConfigured = errors.New("it wants a client certificate")

// AlreadyConfigured reports whether an error of Apply says that the node has
// left maintenance.
func AlreadyConfigured(err error) bool { return errors.Is(err, errConfigured) }
