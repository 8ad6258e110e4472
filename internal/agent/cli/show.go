package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/job"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/size"
)

// show has work tell a person what it does, beside its record.
func show(w job.Work, out io.Writer) job.Work {
	return func(ctx context.Context, h host.Host, spec api.JobSpec, rep report.Reporter) (api.JobResult, error) {
		return w(ctx, h, spec, &teller{Reporter: rep, out: out})
	}
}

// teller prints what it passes on: a line an entry, and a line whenever a
// step has come another tenth of its way.
type teller struct {
	report.Reporter
	out io.Writer

	mu    sync.Mutex
	step  string
	tenth int64
}

// Log implements report.Reporter.
func (t *teller) Log(e api.LogEntry) {
	t.Reporter.Log(e)
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "%-4s %s\n", e.Event, e.Text)
	if e.Output != "" {
		fmt.Fprintf(t.out, "     %s\n", strings.ReplaceAll(e.Output, "\n", "\n     "))
	}
}

// Progress implements report.Reporter.
func (t *teller) Progress(p api.Progress) {
	t.Reporter.Progress(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	var tenth int64
	if p.Total > 0 {
		tenth = p.Done * 10 / p.Total
	}
	if p.Step == t.step && tenth == t.tenth {
		return
	}
	t.step, t.tenth = p.Step, tenth
	if p.Total > 0 {
		fmt.Fprintf(t.out, "     %s: %d %% of %s\n", p.Step, p.Done*100/p.Total, size.Text(uint64(p.Total)))
	}
}

// resultText says a job's result in a line.
func resultText(r api.JobResult) string {
	switch {
	case r.DiskPrep != nil:
		return fmt.Sprintf("blank and proved so: %s; released %d holders, cleared %d signatures and partitions",
			strings.Join(r.DiskPrep.Blanked, ", "), len(r.DiskPrep.Released), len(r.DiskPrep.Cleared))
	case r.Stage != nil:
		return fmt.Sprintf("staged a %s image of %s, %s of it data, %s",
			r.Stage.Format, size.Text(uint64(r.Stage.RawSize)), size.Text(uint64(r.Stage.DataSize)), r.Stage.Digest())
	case r.Write != nil:
		return fmt.Sprintf("the disk %s equals the staged image: %s written at %s, %s read back",
			r.Write.Serial, size.Text(uint64(r.Write.BytesWritten)), size.Rate(r.Write.MBPerSecond*1e6), size.Text(uint64(r.Write.BytesVerified)))
	}
	return "done"
}
