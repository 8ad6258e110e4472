package run

import "time"

// Defaults of Timeouts. They are generous: an EM-A410X looked hung for 20
// minutes before Talos came up (siderolabs/talos#8608), and waiting costs
// nothing but time.
const (
	DefaultRescueBoot = 30 * time.Minute
	DefaultStage      = time.Hour
	DefaultWrite      = time.Hour
	DefaultNormalBoot = 30 * time.Minute
	DefaultApply      = 10 * time.Minute
	DefaultReady      = 30 * time.Minute
	DefaultDiskPrep   = 30 * time.Minute
	// Networks are away for minutes and come back.
	DefaultUnreachable = 5 * time.Minute
)

// DiskPrepOr gives the bound, or its default.
func (t Timeouts) DiskPrepOr() time.Duration { return or(t.DiskPrep, DefaultDiskPrep) }

// UnreachableOr gives the bound, or its default.
func (t Timeouts) UnreachableOr() time.Duration { return or(t.Unreachable, DefaultUnreachable) }

// RescueBootOr gives the bound, or its default.
func (t Timeouts) RescueBootOr() time.Duration { return or(t.RescueBoot, DefaultRescueBoot) }

// StageOr gives the bound, or its default.
func (t Timeouts) StageOr() time.Duration { return or(t.Stage, DefaultStage) }

// WriteOr gives the bound, or its default.
func (t Timeouts) WriteOr() time.Duration { return or(t.Write, DefaultWrite) }

// NormalBootOr gives the bound, or its default.
func (t Timeouts) NormalBootOr() time.Duration { return or(t.NormalBoot, DefaultNormalBoot) }

// ApplyOr gives the bound, or its default.
func (t Timeouts) ApplyOr() time.Duration { return or(t.Apply, DefaultApply) }

// ReadyOr gives the bound, or its default.
func (t Timeouts) ReadyOr() time.Duration { return or(t.Ready, DefaultReady) }

func or(d, def time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return def
}
