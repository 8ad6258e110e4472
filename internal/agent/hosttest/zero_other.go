//go:build !linux

package hosttest

import "os"

func zero(f *os.File, off, length int64) error { return writeZeros(f, off, length) }
