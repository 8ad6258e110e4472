package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/inventory"
	"github.com/ironlot/ironlot/internal/agent/job"
	"github.com/ironlot/ironlot/internal/agent/plan"
	"github.com/ironlot/ironlot/internal/agent/stage"
	"github.com/ironlot/ironlot/internal/cmdline"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/size"
)

// handFlags are the flags of the commands that a person runs by hand.
type handFlags struct {
	system    string
	secondary []string
	dryRun    bool
	yes       bool
}

func (f *handFlags) add(cmd *cobra.Command, erases bool) {
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be done and do nothing")
	if erases {
		cmd.Flags().StringVar(&f.system, "system", "", "system disk: its serial, WWN or by-id name")
		cmd.Flags().BoolVar(&f.yes, "yes", false, "really erase")
		_ = cmd.MarkFlagRequired("system")
	}
}

func (a *app) prepCommand() *cobra.Command {
	var f handFlags
	cmd := &cobra.Command{
		Use: "disk-prep", Short: "Release disks and erase them to a blank GPT", Args: cmdline.Words(0),
		Long: `Takes down all that uses the named disks (swap, mounts, LVM, device mapper, md),
clears every signature and superblock at both ends of the disks and of their
partitions, writes a blank GPT and proves the outcome. Other disks are not
touched. Refused before anything is written when the running system lies on a
named disk, when an array or volume group reaches to another disk, when another
disk holds META, STATE or EPHEMERAL of an older Talos, or when a tool is missing.`,
		Example: "  agent disk-prep --system S3X1 --secondary S3X2 --dry-run",
		RunE: func(cmd *cobra.Command, _ []string) error {
			inv, err := inventory.Take(cmd.Context(), a.host)
			if err != nil {
				return err
			}
			spec, err := prepSpec(inv.Disks, f)
			if err != nil {
				return err
			}
			p, err := plan.DiskPrep(inv, spec)
			if err != nil {
				return err
			}
			if f.dryRun || !f.yes && !p.Clean() {
				return planned(cmd, f, p, p.String())
			}
			return a.byHand(cmd, api.JobSpec{Kind: api.DiskPrep, DiskPrep: &spec})
		},
	}
	f.add(cmd, true)
	cmd.Flags().StringArrayVar(&f.secondary, "secondary", nil, "another disk to hand over, named likewise (repeat)")
	outputFlag(cmd, "text")
	return cmd
}

func prepSpec(disks []api.Disk, f handFlags) (api.DiskPrepSpec, error) {
	system, err := pick(disks, f.system)
	if err != nil {
		return api.DiskPrepSpec{}, err
	}
	spec := api.DiskPrepSpec{System: system.Identity()}
	for _, name := range f.secondary {
		d, err := pick(disks, name)
		if err != nil {
			return api.DiskPrepSpec{}, err
		}
		spec.Secondary = append(spec.Secondary, d.Identity())
	}
	return spec, nil
}

// pick finds the disk that a person names by serial, WWN or by-id name.
func pick(disks []api.Disk, name string) (api.Disk, error) {
	rule := run.DiskChoice{Serial: name}
	bySerial := func(d api.Disk) bool { return d.Serial == name }
	if !slices.ContainsFunc(disks, bySerial) {
		for _, other := range []run.DiskChoice{{WWN: name}, {ByID: name}} {
			if d, err := plan.Choose(disks, other); err == nil {
				return d, nil
			}
		}
	}
	return plan.Choose(disks, rule)
}

func (a *app) stageCommand() *cobra.Command {
	var f handFlags
	var image run.Image
	cmd := &cobra.Command{
		Use: "stage", Short: "Download an image into RAM and check it; touches no disk", Args: cmdline.Words(0),
		Example: "  agent stage --url https://factory.talos.dev/image/…/metal-amd64.raw.zst",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.dryRun {
				return a.stagePlan(cmd, f)
			}
			return a.byHand(cmd, api.JobSpec{Kind: api.Stage, Stage: &api.StageSpec{Image: image}})
		},
	}
	f.add(cmd, false)
	cmd.Flags().StringVar(&image.URL, "url", "", "where the raw image is: http or https; plain, zst, xz or gz")
	cmd.Flags().StringVar(&image.SHA256, "sha256", "", "SHA-256 of the download")
	cmd.Flags().StringVar(&image.RawSHA256, "raw-sha256", "", "SHA-256 of the raw image")
	_ = cmd.MarkFlagRequired("url")
	outputFlag(cmd, "text")
	return cmd
}

func (a *app) stagePlan(cmd *cobra.Command, f handFlags) error {
	free, err := a.host.RAMFree()
	if err != nil {
		return fault.Retry("the free RAM cannot be read: %w", err)
	}
	path := stage.Image(a.host.RAMDir())
	steps := plan.Plan{Steps: []plan.Step{{Action: "stage", Target: path}}}
	return planned(cmd, f, steps, fmt.Sprintf("would download the image to %s, where %s are free; no disk is touched\n", path, size.Text(free)))
}

func (a *app) writeCommand() *cobra.Command {
	var f handFlags
	var verify string
	cmd := &cobra.Command{
		Use: "write", Short: "Write the staged image to the system disk and read it back", Args: cmdline.Words(0),
		Example: "  agent write --system S3X1 --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if v := run.Verify(verify); v != run.VerifyFull && v != run.VerifyData {
				return fault.Operator("use full or data", "--verify is %q", verify)
			}
			disks, err := a.host.Topology(cmd.Context())
			if err != nil {
				return fault.Retry("the list of disks cannot be read: %w", err)
			}
			d, err := pick(disks, f.system)
			if err != nil {
				return err
			}
			staged, err := stage.Find(a.host.RAMDir())
			if err != nil {
				return err
			}
			if f.dryRun || !f.yes {
				steps := plan.Plan{Disks: []api.Disk{d}, Steps: []plan.Step{{Action: "write", Target: plan.Describe(d), Disk: &d}}}
				return planned(cmd, f, steps, fmt.Sprintf("would erase the disk %s and write the staged image to it: %s, of which %s are data, %s\n",
					plan.Describe(d), size.Text(uint64(staged.RawSize)), size.Text(uint64(staged.DataSize)), staged.Digest()))
			}
			return a.byHand(cmd, api.JobSpec{Kind: api.Write, Write: &api.WriteSpec{
				System: d.Identity(), DataSHA256: staged.DataSHA256, RawSize: staged.RawSize, Verify: run.Verify(verify),
			}})
		},
	}
	f.add(cmd, true)
	cmd.Flags().StringVar(&verify, "verify", string(run.VerifyFull), "read back all of the image (full), or its data and a sample of its holes (data)")
	outputFlag(cmd, "text")
	return cmd
}

// planned prints a plan. Without --dry-run it was not asked for: then it is
// what --yes would have done, and an error.
func planned(cmd *cobra.Command, f handFlags, p plan.Plan, text string) error {
	if inJSON(cmd) && f.dryRun {
		return answer(cmd, p)
	}
	if !inJSON(cmd) {
		if _, err := io.WriteString(cmd.OutOrStdout(), text); err != nil {
			return err
		}
	}
	if f.dryRun {
		return nil
	}
	return fault.Operator("read the plan (--dry-run) and say --yes if that is what you want", "nothing was done: it would erase disks")
}

// byHand does a job in the foreground and shows what it does. It is a job
// like the worker's, so that the two never work at once.
func (a *app) byHand(cmd *cobra.Command, spec api.JobSpec) error {
	bootID, err := a.host.BootID()
	if err != nil {
		return err
	}
	jobs, err := job.Open(a.host, bootID)
	if err != nil {
		return err
	}
	key := "hand-" + string(spec.Kind) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	shown := show(work, cmd.ErrOrStderr())
	status, err := jobs.Do(cmd.Context(), key, spec, shown)
	if err != nil {
		return err
	}
	if inJSON(cmd) {
		return answer(cmd, *status.Result)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s\n", resultText(*status.Result))
	return nil
}
