package history

import (
	"cmp"
	_ "embed"
	"html/template"
	"io"
	"slices"
	"time"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/size"
)

//go:embed report.html.tmpl
var page string

// HTML writes the lot's story as one page that needs nothing else: pictures
// are SVG inside it, and it follows the reader's light or dark mode.
func (l Lot) HTML(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"clock": clock, "seconds": seconds, "chart": func(r Report) chart { return draw(r) },
		"took":  func(r Report, p Pass) string { return seconds(p.Took(r.Read)) },
		"title": func(p Pass) string { return p.title() }, "text": func(p Pass) string { return p.text() },
		"told": func(r Report) string {
			if r.Problem == nil {
				return string(r.State)
			}
			return run.Told(r.State, r.Problem.Phase, r.Problem.Message)
		},
		"lost":  func(r Report) string { return r.lost() },
		"words": words, "next": func(r Report) string { return r.next() },
		"hour": func(t time.Time) string { return t.UTC().Format(time.TimeOnly) }, "legend": legend,
		"bytes": size.Text[uint64], "length": size.Text[int],
		"total": func(r Report) string {
			if r.Ended.IsZero() {
				return seconds(r.Read.Sub(r.Started)) + " so far"
			}
			return seconds(r.Ended.Sub(r.Started))
		},
	}).Parse(page)
	if err != nil {
		return err
	}
	node, first := l.FirstFailure()
	nodes := l.byInterest()
	stopped := stopped(nodes)
	shown := stopped[:min(mostStopped, len(stopped))]
	return t.Execute(w, map[string]any{
		"Lot": l, "Simulated": l.simulated(), "Headline": l.headline(), "Phases": l.Phases(),
		"Deviations": l.Deviations(), "FirstNode": node, "First": first,
		"Nodes": nodes, "Stopped": shown, "More": len(stopped) - len(shown),
	})
}

// mostStopped is how many nodes that stopped the page begins with.
const mostStopped = 10

// byInterest puts the nodes that need a person first, then those that ended
// early, then those at work.
func (l Lot) byInterest() []Report {
	rank := map[run.State]int{run.Stuck: 0, run.Aborted: 1, run.Running: 2}
	at := func(r Report) int {
		if n, ok := rank[r.State]; ok {
			return n
		}
		return len(rank)
	}
	nodes := slices.Clone(l.Nodes)
	slices.SortStableFunc(nodes, func(a, b Report) int { return cmp.Compare(at(a), at(b)) })
	return nodes
}

// stopped are the nodes that go no further by themselves and are not Ready.
func stopped(nodes []Report) []Report {
	return slices.DeleteFunc(slices.Clone(nodes), func(r Report) bool { return r.State != run.Stuck && r.State != run.Aborted })
}

// legend lists the outcomes that a run's picture has.
func legend(r Report) []Outcome {
	var all []Outcome
	for _, o := range []Outcome{Proved, Failed, Canceled, Open} {
		if slices.ContainsFunc(r.Passes, func(p Pass) bool { return p.Outcome == o }) {
			all = append(all, o)
		}
	}
	return all
}

// chart is a run's passes as bars over time, in the units of the picture.
type chart struct {
	Width, Height, Axis int
	Bars                []bar
	Ticks               []tick
}

type bar struct {
	X, Y, Width, Height, LabelX int
	Outcome                     Outcome
	Label, Tip                  string
	Place                       place
}

// place is where a bar's label stands: where there is room for it.
type place string

const (
	behind place = "behind"
	before place = "before"
	within place = "within"
)

type tick struct {
	X     int
	Label string
}

const (
	chartWidth = 960
	rowHeight  = 22
	barHeight  = 14
	leastBar   = 2
	labelRoom  = 190 // of a label beside its bar
	labelGap   = 6
	tickRoom   = 45
)

// draw lays the chart out. A row is a pass, so that rewinds show as steps
// back in the order of phases.
func draw(r Report) chart {
	end := r.Read
	total := max(end.Sub(r.Started), time.Second)
	x := func(t time.Time) int { return int(float64(chartWidth) * float64(t.Sub(r.Started)) / float64(total)) }
	c := chart{Width: chartWidth, Axis: len(r.Passes) * rowHeight, Height: len(r.Passes)*rowHeight + 24}
	for i, p := range r.Passes {
		until := p.Ended
		if until.IsZero() {
			until = end
		}
		b := bar{X: x(p.Asked), Y: i*rowHeight + (rowHeight-barHeight)/2, Height: barHeight, Outcome: p.Outcome,
			Label: p.title() + " " + seconds(p.Took(end)), Tip: p.text()}
		b.Width = max(x(until)-b.X, leastBar)
		b.Place, b.LabelX = label(b)
		c.Bars = append(c.Bars, b)
	}
	step := tickStep(total)
	for at := time.Duration(0); at <= total; at += step {
		if t := (tick{X: x(r.Started.Add(at)), Label: at.String()}); t.X+tickRoom <= chartWidth {
			c.Ticks = append(c.Ticks, t)
		}
	}
	return c
}

// label finds room for a bar's label.
func label(b bar) (place, int) {
	switch {
	case b.X+b.Width+labelRoom <= chartWidth:
		return behind, b.X + b.Width + labelGap
	case b.X >= labelRoom:
		return before, b.X - labelGap
	default:
		return within, b.X + labelGap
	}
}

// tickStep gives some five to ten ticks at round times.
func tickStep(total time.Duration) time.Duration {
	for _, step := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour} {
		if total/step <= 10 {
			return step
		}
	}
	return total / 5
}
