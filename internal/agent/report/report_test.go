package report_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/report"
)

type recorder struct {
	progress []api.Progress
	log      []api.LogEntry
}

func (r *recorder) Progress(p api.Progress) { r.progress = append(r.progress, p) }
func (r *recorder) Log(e api.LogEntry)      { r.log = append(r.log, e) }

// TestMeter counts a thousand bytes a second for ten seconds.
func TestMeter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		m := report.NewMeter(r, "work", 10_000)
		for range 1000 {
			time.Sleep(10 * time.Millisecond) // the bubble's clock
			m.Add(10)
		}
		m.End()
		if n := len(r.progress); n != 22 {
			t.Fatalf("%d reports in ten seconds", n)
		}
		if first := r.progress[0]; first != (api.Progress{Step: "work", Total: 10_000}) {
			t.Errorf("first %+v", first)
		}
		if second := r.progress[1]; second.Done != 500 || second.Rate != 1000 {
			t.Errorf("second %+v", second)
		}
		if last := r.progress[21]; last.Done != 10_000 || last.Rate != 1000 {
			t.Errorf("last %+v", last)
		}
	})
}

func TestMeterTogether(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	m := report.NewMeter(r, "work", -1)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				m.Add(1)
			}
		})
	}
	wg.Wait()
	m.End()
	if last := r.progress[len(r.progress)-1]; last.Done != 8000 || last.Total != 0 {
		t.Errorf("last %+v", last)
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	report.Log(r, "saw", "a disk")
	if len(r.log) != 1 || r.log[0].Event != "saw" || r.log[0].Text != "a disk" || time.Since(r.log[0].At) > time.Minute {
		t.Errorf("log %+v", r.log)
	}
}
