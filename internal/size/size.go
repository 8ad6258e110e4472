// Package size writes numbers of bytes for people, in powers of 1024
// everywhere, so that an image and a disk can be compared wherever they stand.
package size

import (
	"fmt"
	"math"
	"strconv"
)

const units = "KMGTPE" // each a thousand of the one before, or 1024

// Text is a number of bytes: 512 B, 4.1 GiB.
func Text[T int | int64 | uint64](n T) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1023.95 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}

// Bound is a size that a person has given, such as 400GB, in the unit in which it
// is shortest: theirs, or one that says the same. Beside a power of 1000 stands
// what Text says of it, as of the disks that it is compared with.
func Bound(n uint64) string {
	text, decimal := fmt.Sprintf("%d B", n), false
	for suffix, base := range []float64{1000, 1024} {
		unit := 1.0
		for _, letter := range units {
			unit *= base
			value := math.Round(float64(n)/unit*1e6) / 1e6 // no lot file says it finer
			given := strconv.FormatFloat(value, 'f', -1, 64) + " " + string(letter) + []string{"B", "iB"}[suffix]
			if value >= 1 && uint64(math.Round(value*unit)) == n && len(given) < len(text) {
				text, decimal = given, base == 1000
			}
		}
	}
	if decimal {
		text += " (" + Text(n) + ")"
	}
	return text
}

// Rate is a number of bytes per second.
func Rate(perSecond float64) string { return Text(int64(perSecond)) + "/s" }
