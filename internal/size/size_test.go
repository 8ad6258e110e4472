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
