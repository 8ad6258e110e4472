//go:build race

package hosttest

// Race tells that the race detector is on, which makes decoders and digests
// many times slower: tests whose point is size are left out.
const Race = true
