// Package size writes numbers of bytes for people, in powers of 1024
// everywhere, so that an image and a disk can be compared wherever they stand.
package size

import "fmt"

// Text is a number of bytes: 512 B, 4.1 GiB.
func Text[T int | int64 | uint64](n T) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1023.95 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}

// Rate is a number of bytes per second.
func Rate(perSecond float64) string { return Text(int64(perSecond)) + "/s" }
