package activities

import (
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// failing is a network on which every request fails.
type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// TestImageOnAHostThatDoesNotExist: a wrong name is a person's after seconds;
// a resolver that does not answer is one that will.
func TestImageOnAHostThatDoesNotExist(t *testing.T) {
	t.Parallel()
	image := run.Image{URL: "https://factroy.example/talos.raw.zst?signature=CANARY"}
	look := func(err error) (took time.Duration, told error) {
		synctest.Test(t, func(t *testing.T) {
			a := New(Config{HTTP: &http.Client{Transport: failing{err}}})
			began := time.Now()
			_, told = a.lookAtImage(t.Context(), image)
			took = time.Since(began)
		})
		return took, told
	}
	took, err := look(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "factroy.example", IsNotFound: true}})
	require.EqualError(t, err, "the image's host factroy.example does not exist, says the DNS of the worker; correct image.url in the lot file, or the worker's DNS, then retry")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
	require.Equal(t, (nameLooks-1)*nameEvery, took)

	took, err = look(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "server misbehaving", Name: "factroy.example", IsTemporary: true}})
	require.ErrorContains(t, err, "the image at https://factroy.example/talos.raw.zst cannot be reached from the worker: dial tcp: lookup factroy.example: server misbehaving")
	require.Equal(t, fault.Transient, fault.ClassOf(err))
	require.NotContains(t, err.Error(), "CANARY")
	require.Zero(t, took, "the attempt after it looks again")
}
