package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/inventory"
	"github.com/ironlot/ironlot/internal/agent/plan"
	"github.com/ironlot/ironlot/internal/cmdline"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/size"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Tell the agent's version and digest", Args: cmdline.Words(0), Annotations: answersJSON(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			sum, err := a.digest()
			if err != nil {
				return fault.Retry("the agent's own file cannot be read: %w", err)
			}
			return answer(cmd, api.Version{Version: a.version, Arch: runtime.GOARCH, SHA256: sum})
		},
	}
}

// digest is the SHA-256 of the agent's own file.
func (a *app) digest() (string, error) {
	path, err := a.host.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func (a *app) inspectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "inspect", Short: "Tell what this machine is and what its disks hold; changes nothing", Args: cmdline.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			inv, err := inventory.Take(cmd.Context(), a.host)
			if err != nil {
				return err
			}
			if inJSON(cmd) {
				return answer(cmd, inv)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), inventoryText(inv))
			return err
		},
	}
	outputFlag(cmd, "json")
	return cmd
}

// inventoryText tells an inventory to a person.
func inventoryText(inv api.Inventory) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: Linux %s (%s), boot %s\n", inv.Hostname, inv.Kernel, inv.Arch, inv.BootID)
	if inv.Root.InRAM {
		fmt.Fprintf(&b, "root: %s on %s, on none of the disks: a rescue system\n", inv.Root.FSType, inv.Root.Source)
	} else {
		fmt.Fprintf(&b, "root: %s on %s, disks %v: NOT a rescue system\n", inv.Root.FSType, inv.Root.Source, inv.Root.Disks)
	}
	fmt.Fprintf(&b, "RAM: %s, %s free for an image; tools: %s\n", size.Text(inv.RAM), size.Text(inv.RAMFree), strings.Join(inv.Tools, ", "))
	for _, d := range inv.Disks {
		diskText(&b, d)
	}
	return b.String()
}

func diskText(b *strings.Builder, d api.Disk) {
	table := "no partition table"
	switch {
	case d.Blank:
		table = "blank gpt"
	case d.Table != "":
		table = d.Table
	}
	fmt.Fprintf(b, "disk %s, sectors of %d: %s\n", plan.Describe(d), d.SectorSize, table)
	for _, s := range d.Signatures {
		fmt.Fprintf(b, "    %s at %d %s\n", s.Type, s.Offset, s.Label)
	}
	for _, p := range d.Parts {
		fmt.Fprintf(b, "    partition %d %s: %s at %d", p.Number, p.Label, size.Text(p.Size), p.Offset)
		for _, s := range p.Signatures {
			fmt.Fprintf(b, ", %s %s", s.Type, s.Label)
		}
		b.WriteString("\n")
	}
	for _, h := range d.Holders {
		fmt.Fprintf(b, "    in use by %s %s on %s\n", h.Kind, h.Name, h.Device)
	}
}
