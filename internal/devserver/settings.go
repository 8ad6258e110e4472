package devserver

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ironlot/ironlot/internal/run"
)

// Attributes are the search attributes that runs carry, all Keyword.
func Attributes() []string {
	return []string{run.AttrLot, run.AttrNode, run.AttrPhase, run.AttrState}
}

// DynamicConfig is what the server's dynamic configuration has beyond its
// defaults, each KEY=VALUE.
func DynamicConfig() []string {
	return []string{
		// The latency of a lone workflow goes from 950 to 122 ms with it (measured
		// on two cores).
		"history.transferProcessorMaxPollRPS=500",
		// A worker gets a phase with the answer to its workflow task, without a
		// task queue in between.
		"system.enableActivityEagerExecution=true",
		// The starts of many nodes are one batch of events. With the 512 KiB that
		// are the default, the batch is read again for each of them.
		"history.eventsCacheMaxSizeBytes=33554432",
		// The dev server reads its list of search attributes from the database at
		// every use of one. Ours are there before it takes work.
		"system.forceSearchAttributesCacheRefreshOnRead=false",
	}
}

// arguments is the server's command line. The defaults are slow on a file: the
// pragmas triple the throughput (measured on two cores).
func arguments(o Options) []string {
	args := []string{
		"server", "start-dev",
		"--ip", o.Host,
		"--port", strconv.Itoa(o.Port),
		"--ui-port", strconv.Itoa(o.UIPort),
		"--db-filename", o.Database,
		"--sqlite-pragma", "journal_mode=wal",
		"--sqlite-pragma", "synchronous=normal",
		"--log-format", "json",
		"--log-level", "warn",
	}
	for _, value := range slices.Concat(DynamicConfig(), o.Settings) {
		args = append(args, "--dynamic-config-value", value)
	}
	for _, name := range Attributes() {
		args = append(args, "--search-attribute", name+"=Keyword")
	}
	return args
}

// Collector is the server's setting of Go's garbage collector, which took a
// twelfth of a busy server's time: it takes half of that with it, for memory.
const Collector = collectorIs + "200"

const collectorIs = "GOGC="

// environment leaves out what the server has no business to know: the
// provider's keys and our own.
func environment(all []string) []string {
	env := slices.DeleteFunc(slices.Clone(all), func(v string) bool {
		return strings.HasPrefix(v, "SCW_") || strings.HasPrefix(v, "IRONLOT_") || strings.HasPrefix(v, "TEMPORAL_")
	})
	if !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, collectorIs) }) {
		env = append(env, Collector)
	}
	return env
}

// tail gives the last lines of a log from an offset on, for an error.
func tail(path string, from int64) string {
	const most = 2000 // bytes
	file, err := os.Open(path)
	if err != nil {
		return "(the log cannot be read)"
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil {
		from = max(from, info.Size()-most)
	}
	data, _ := io.ReadAll(io.NewSectionReader(file, from, most))
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "(nothing, as when the disk is full)"
	}
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}
