//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// report prints medians, their ratios, and what each part takes alone.
func report(out io.Writer, title string, theirs, ours []result, l limits) {
	t := table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	fmt.Fprintf(out, "\n%s; %s:\n\n", title, times(len(ours)))
	t.row("", "by hand", "Ironlot", "ratio")
	for _, line := range []struct {
		what string
		of   func(result) time.Duration
	}{
		{"download and unpack", func(r result) time.Duration { return r.stage }},
		{"write (Ironlot: and read back)", func(r result) time.Duration { return r.write }},
		{"total", result.total},
	} {
		a, b := median(theirs, line.of), median(ours, line.of)
		t.row(line.what, seconds(a), seconds(b), ratio(float64(b), float64(a)))
	}
	for _, line := range []struct {
		what string
		of   func(result) int64
	}{
		{"RAM for the image", func(r result) int64 { return r.ram }},
		{"written to the disk", func(r result) int64 { return r.written }},
	} {
		a, b := median(theirs, line.of), median(ours, line.of)
		t.row(line.what, megabytes(a), megabytes(b), ratio(float64(b), float64(a)))
	}
	t.end()
	t = table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	fmt.Fprintln(out, "\nWhere Ironlot's time goes, and each part with nothing else done:")
	fmt.Fprintln(out)
	t.row("", "in the run", "alone", "")
	step := func(name string) string {
		return seconds(median(ours, func(r result) time.Duration { return r.steps[name] }))
	}
	t.row("download the image", step("download the image"), seconds(max(l.Download, l.Decompress, l.Digest)), "the longest of these, which run side by side")
	t.row("  network", "", seconds(l.Download), "")
	t.row("  decompression", "", seconds(l.Decompress), "")
	t.row("  SHA-256 of the download", "", seconds(l.Digest), "")
	t.row("  SHA-256 of the raw image", "not done", seconds(l.RawDigest), "")
	t.row("zero the disk", step("zero the disk"), "", "")
	t.row("write the image", step("write the image"), seconds(l.WriteData), fmt.Sprintf("all of it, zeros too: %s", seconds(l.WriteAll)))
	t.row("read the disk back", step("read the disk back"), seconds(l.Read+l.Compare), fmt.Sprintf("reading %s, comparing %s", seconds(l.Read), seconds(l.Compare)))
	t.end()
}

type table struct{ w *tabwriter.Writer }

func (t table) row(cells ...string) {
	for _, c := range cells {
		fmt.Fprintf(t.w, "%s\t", c)
	}
	fmt.Fprintln(t.w)
}

func (t table) end() { _ = t.w.Flush() }

func median[T time.Duration | int64](all []result, of func(result) T) T {
	var values []T
	for _, r := range all {
		values = append(values, of(r))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func times(n int) string {
	if n == 1 {
		return "one pair"
	}
	return fmt.Sprintf("medians of %d pairs in turn", n)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }

func ratio(a, b float64) string { return fmt.Sprintf("%.2f", a/b) }
