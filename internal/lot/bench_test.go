package lot

import (
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lot/lottest"
	"github.com/ironlot/ironlot/internal/seal"
)

// BenchmarkHundredNodes is what `starter validate` does (check), and what
// `starter provision` does besides before it asks (seal), for 100 nodes.
func BenchmarkHundredNodes(b *testing.B) {
	path := lottest.Lot(b, "large", 100)
	identity, err := age.GenerateX25519Identity()
	require.NoError(b, err)
	check := func(b *testing.B) *Rendered {
		l, err := Load(path)
		require.NoError(b, err)
		rendered, err := l.Render(b.Context())
		require.NoError(b, err)
		return rendered
	}
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			check(b)
		}
	})
	b.Run("seal", func(b *testing.B) {
		rendered := check(b)
		for b.Loop() {
			_, err := rendered.Seal(func(plaintext []byte) (string, error) { return seal.Seal(plaintext, identity.Recipient()) })
			require.NoError(b, err)
		}
	})
}
