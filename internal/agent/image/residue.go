package image

// partitionStep is where partitions start: at multiples of it.
const partitionStep = 1 << 20

// Residue looks where partitions start, at each MiB of a disk from off to end,
// whether it reads as zeros there, where signatures lie. It gives the first
// offset that does not, or -1; off is a multiple of a MiB.
func Residue(off, end int64, read func(p []byte, off int64) error) (int64, error) {
	p := make([]byte, 2*Block)
	for ; off+int64(len(p)) <= end; off += partitionStep {
		if err := read(p, off); err != nil {
			return 0, err
		}
		if !IsZero(p) {
			return off, nil
		}
	}
	return -1, nil
}
