package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/history"
	"github.com/ironlot/ironlot/starter/internal/show"
)

type postmortemFlags struct {
	format string
	files  []string
	out    string
}

func (a *app) postmortemCommand() *cobra.Command {
	o := postmortemFlags{}
	cmd := &cobra.Command{
		Use:   "postmortem LOT [NODE]",
		Short: "Tell a lot's or a node's story from the history alone",
		Long: `Writes a report from the workflows' histories: the phases over time as a
picture, each pass with its attempts, what happened on the machine, what
decided the outcome, where time was lost, and which nodes are not like the
others. It works long after the run, on whatever Temporal still keeps, and on
files exported by ` + "`temporal workflow show -o json`" + ` or the Web UI (--from).
No secret is in it.

  starter postmortem lab --format html --out lab.html
  starter postmortem lab lab-worker-1
  starter postmortem --from exported.json`,
		Args:              takes(0, argMaybeLot, argMaybeNode),
		ValidArgsFunction: a.completeLotAndNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.oneFormat(&o, cmd.Flags().Changed("format")); err != nil {
				return err
			}
			return a.postmortem(cmd.Context(), args, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "md", "html, md, json or yaml (-o json and -o yaml do the same)")
	f.StringArrayVar(&o.files, "from", nil, "an exported history of a node's run; may be repeated")
	words(cmd, "format", "html", "md", "json", "yaml")
	_ = cmd.MarkFlagFilename("from", "json") // fails for unknown flags only
	f.StringVar(&o.out, "out", "", "file to write; standard output when empty")
	return cmd
}

// oneFormat finds the format that --format and -o agree on.
func (a *app) oneFormat(o *postmortemFlags, given bool) error {
	if !slices.Contains([]string{"html", "md", "json", "yaml"}, o.format) {
		return refuse("use html, md, json or yaml", "the format %q is not known", o.format)
	}
	if !a.structured() {
		return nil
	}
	if given && o.format != a.output {
		return refuse("leave out one of the two", "--format %s and -o %s contradict each other", o.format, a.output)
	}
	o.format = a.output
	return nil
}

func (a *app) postmortem(ctx context.Context, args []string, o postmortemFlags) error {
	if (len(args) == 0) == (len(o.files) == 0) {
		return refuse("name one of the two", "a post-mortem needs either a lot or exported histories (--from)")
	}
	var lot history.Lot
	var err error
	if len(o.files) > 0 {
		lot, err = exportedLot(o.files)
	} else {
		lot, err = a.recordedLot(ctx, args)
	}
	if err != nil {
		return err
	}
	return a.writeReport(lot, o)
}

// exportedLot reads exported histories.
func exportedLot(files []string) (history.Lot, error) {
	var lot history.Lot
	for _, file := range files {
		data, err := readHistory(file)
		if err != nil {
			return lot, refuse("name a file that you may read", "the history cannot be read: %w", err)
		}
		h, err := history.Parse(data)
		if err != nil {
			return lot, fmt.Errorf("%s: %w", file, err)
		}
		r, err := history.Read(strings.TrimSuffix(filepath.Base(file), ".json"), h, time.Time{})
		if err != nil {
			return lot, err
		}
		lot.Name = r.Node.Lot
		lot.Nodes = append(lot.Nodes, *r)
	}
	return lot, nil
}

// maxHistory is more than an exported history ever has, in bytes: Temporal
// ends a workflow whose history reaches 50 MB, and JSON holds it in base64.
const maxHistory = 256 << 20

// readHistory reads a file or a pipe, not a device without end.
func readHistory(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxHistory+1))
	if err == nil && len(data) > maxHistory {
		err = fmt.Errorf("%s is larger than the %d bytes that a history may have", file, maxHistory)
	}
	return data, err
}

func (a *app) writeReport(lot history.Lot, o postmortemFlags) error {
	out := a.stdout
	if o.out != "" {
		file, err := os.Create(o.out)
		if err != nil {
			return refuse("name a file that you may write", "the report cannot be written: %w", err)
		}
		if err := writeAs(file, lot, o.format); err != nil {
			_ = file.Close()
			return err
		}
		return file.Close()
	}
	return writeAs(out, lot, o.format)
}

func writeAs(w io.Writer, lot history.Lot, format string) error {
	switch format {
	case "html":
		return lot.HTML(w)
	case "json", "yaml":
		return encode(w, lot, format)
	default: // for people, on a terminal: what machines said may hold its commands
		var text strings.Builder
		if err := lot.Markdown(&text); err != nil {
			return err
		}
		_, err := io.WriteString(w, show.Printable(text.String()))
		return err
	}
}
