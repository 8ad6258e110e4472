//go:build linux

// Command benchlots measures whole lots: how much longer a lot of many
// machines takes than its slowest machine, how long machines wait for Ironlot,
// and what that costs. The machines are the lab's, simulated in this process;
// the starter, the worker and Temporal's server are the real programs.
//
// How long machines waited is taken from their own events (SSH is open, a job
// has ended, maintenance is served, …), not from what Ironlot says of itself.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
	"time"
)

// options are what the command line says.
type options struct {
	nodes       int
	machineTime time.Duration // of a usual machine, from the reboot into rescue to the end of its run
	spread      float64
	seed        uint64
	rate        float64 // of the worker's provider activities, a second; 0: its default
	server      string  // Temporal's store: sqlite or postgres
	shards      int     // history shards of the server on PostgreSQL
	bin         string  // holds starter, worker, Temporal's programs and the agents
	dir         string  // for the machines' disks
	json        string  // file for the results; may be empty
	history     string  // file for the history of the node with the longest wait; may be empty
	profile     string  // file for the lab's CPU profile; may be empty
	keep        bool    // leave logs and Temporal's database
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.IntVar(&o.nodes, "nodes", 100, "machines, 1 to 1000")
	flag.DurationVar(&o.machineTime, "machine-time", 300*time.Second, "what a usual machine takes by itself")
	flag.Float64Var(&o.spread, "spread", 0.2, "how much machines differ")
	flag.Uint64Var(&o.seed, "seed", 1, "of how much each machine differs")
	flag.Float64Var(&o.rate, "provider-rate", 0, "the worker's flag of that name; 0 leaves it out")
	flag.StringVar(&o.server, "server", "sqlite", "Temporal's `store`: sqlite, as starter up has it, or postgres")
	flag.IntVar(&o.shards, "shards", 4, "history shards of the server on PostgreSQL")
	flag.StringVar(&o.bin, "bin", "bin", "where the programs are")
	flag.StringVar(&o.dir, "dir", "/dev/shm", "for the machines' disks, some 10 MB a machine")
	flag.StringVar(&o.json, "json", "", "`file` for the results")
	flag.StringVar(&o.history, "history", "", "`file` for the history of the node whose machine waited longest in one place")
	flag.StringVar(&o.profile, "cpuprofile", "", "`file` for the CPU profile of the lab")
	flag.BoolVar(&o.keep, "keep", false, "keep logs and Temporal's database, and say where")
	flag.Parse()
	if err := bench(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "benchlots:", err)
		os.Exit(1)
	}
}

// bench measures one lot and tells what came out.
func bench(ctx context.Context, o options) error {
	if least := jobTime() + readyHold + 5*time.Second; o.machineTime < least {
		return fmt.Errorf("a machine cannot take %s: give -machine-time %s or more", o.machineTime, least)
	}
	if o.profile != "" {
		file, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	r, err := measure(ctx, o)
	if err != nil {
		return err
	}
	r.print(os.Stdout)
	if o.json == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, append(data, '\n'), 0o600)
}
