package size_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/size"
)

func TestText(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1<<20 - 1: "1.0 MiB", 4247 << 20: "4.1 GiB",
		480e9: "447.0 GiB", 1 << 50: "1.0 PiB", 1<<63 - 1: "8.0 EiB",
	} {
		require.Equal(t, want, size.Text(n))
	}
	require.Equal(t, "190.7 MiB/s", size.Rate(2e8))
}

// TestBound: what a person wrote, in their unit.
func TestBound(t *testing.T) {
	t.Parallel()
	const gib, tib = 1 << 30, 1 << 40
	for n, want := range map[uint64]string{
		400e9: "400 GB (372.5 GiB)", 1500e9: "1.5 TB (1.4 TiB)", 2000e9: "2 TB (1.8 TiB)", 1024e9: "1024 GB (953.7 GiB)", 480103981056: "468851544 KiB",
		4096e9: "4096 GB (3.7 TiB)", 100e6: "100 MB (95.4 MiB)",
		400 * gib: "400 GiB", 15625 * gib: "15625 GiB", 1.5 * tib: "1.5 TiB", 1209462790554: "1.1 TiB", 100: "100 B",
	} {
		require.Equal(t, want, size.Bound(n))
	}
}
