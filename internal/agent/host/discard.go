package host

// The ways in which Disk.Zero makes a range read as zeros.
const (
	Discard     = "discard"
	WriteZeroes = "write-zeroes"
	Written     = "written"
)

const (
	firstDiscard = 1 << 30
	mostDiscard  = 64 << 30
)

// DiscardRest zeroes from off to end in growing steps, for as long as that is
// cheap: zero says how it was done, and anything but Discard ends it.
func DiscardRest(off, end int64, zero func(off, length int64) (method string, err error)) error {
	for step := int64(firstDiscard); off < end; step = min(2*step, mostDiscard) {
		n := min(step, end-off)
		method, err := zero(off, n)
		if err != nil || method != Discard {
			return err
		}
		off += n
	}
	return nil
}
