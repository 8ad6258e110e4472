package history

import (
	_ "embed"
	"html/template"
	"io"
	"time"
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
	return t.Execute(w, map[string]any{
		"Lot": l, "Simulated": l.simulated(), "Headline": l.headline(), "Phases": l.Phases(),
		"Deviations": l.Deviations(), "FirstNode": node, "First": first,
	})
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
	After                       bool // the label stands behind the bar, else before it
}

type tick struct {
	X     int
	Label string
}

const (
	chartWidth = 960
	rowHeight  = 22
	barHeight  = 14
	leastBar   = 2
	labelRoom  = 190 // of a label behind its bar
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
		b.After = b.X+b.Width+labelRoom <= chartWidth
		b.LabelX = b.X - 6
		if b.After {
			b.LabelX = b.X + b.Width + 6
		}
		c.Bars = append(c.Bars, b)
	}
	step := tickStep(total)
	for at := time.Duration(0); at <= total; at += step {
		c.Ticks = append(c.Ticks, tick{X: x(r.Started.Add(at)), Label: at.String()})
	}
	return c
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
