package image_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"testing/iotest"

	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/image"
)

// writes records what is written where.
type writes struct {
	at  []int64
	len []int
	out []byte
}

func (w *writes) WriteAt(p []byte, off int64) (int, error) {
	w.at, w.len = append(w.at, off), append(w.len, len(p))
	return copy(w.out[off:], p), nil
}

func TestWriteData(t *testing.T) {
	t.Parallel()
	const b = image.Block
	p := make([]byte, 6*b+512)
	p[b], p[3*b-1], p[6*b+511] = 1, 1, 1 // blocks 1, 2 and the short last one
	w := &writes{out: make([]byte, 100*b)}
	n, err := image.WriteData(w, p, 10*b)
	if err != nil || n != 2*b+512 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if len(w.at) != 2 || w.at[0] != 11*b || w.len[0] != 2*b || w.at[1] != 16*b || w.len[1] != 512 {
		t.Errorf("writes at %v of %v", w.at, w.len)
	}
	if !bytes.Equal(w.out[10*b:16*b+512], p) {
		t.Error("something else was written")
	}
	if n, err := image.WriteData(w, make([]byte, 10*b), 0); n != 0 || err != nil || len(w.at) != 2 {
		t.Errorf("zeros: %d bytes, %v", n, err)
	}
	f, err := os.Open("sparse.go")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := image.WriteData(f, p, 0); err == nil {
		t.Error("a write to a file that is open to read went well")
	}
}

func TestIsZero(t *testing.T) {
	t.Parallel()
	p := make([]byte, 5000)
	if !image.IsZero(p) || !image.IsZero(nil) {
		t.Error("zeros are not zeros")
	}
	for i := range p {
		p[i] = 1
		if image.IsZero(p) {
			t.Fatalf("byte %d was not seen", i)
		}
		p[i] = 0
	}
}

func TestAhead(t *testing.T) {
	t.Parallel()
	data := hosttest.Image(t, 8*mib, 512)[:3*mib+777]
	for _, size := range []int{1000, mib, 4 * mib} {
		a := image.NewAhead(bytes.NewReader(data), size, 3)
		if err := iotest.TestReader(a, data); err != nil {
			t.Errorf("chunks of %d: %v", size, err)
		}
		a.Close()
	}
}

func TestAheadNext(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	a := image.NewAhead(io.MultiReader(iotest.OneByteReader(bytes.NewReader(make([]byte, 2500))), iotest.ErrReader(failed)), 1000, 2)
	defer a.Close()
	for _, want := range []int{1000, 1000, 500} {
		if p, _, err := a.Next(); len(p) != want || err != nil {
			t.Fatalf("chunk of %d, %v; want %d", len(p), err, want)
		}
	}
	for range 2 {
		if p, _, err := a.Next(); len(p) != 0 || !errors.Is(err, failed) {
			t.Errorf("at the end: %d bytes, %v", len(p), err)
		}
	}
}

// TestAheadClose: a closed one frees the goroutine that waits for it.
func TestAheadClose(t *testing.T) {
	t.Parallel()
	src, w := io.Pipe()
	a := image.NewAhead(src, 10, 1)
	got := make(chan error)
	go func() {
		_, err := io.ReadAll(a)
		got <- err
	}()
	if err := w.CloseWithError(io.ErrClosedPipe); err != nil {
		t.Fatal(err)
	}
	a.Close()
	if err := <-got; err == nil {
		t.Error("reading a closed reader went well")
	}
}

func BenchmarkDecode(b *testing.B) {
	raw := hosttest.Image(b, 64*mib, 512)
	for _, format := range formats {
		packed := pack(b, format, raw, len(raw))
		b.Run(string(format), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				r, err := image.Open(bytes.NewReader(packed), image.Options{Limit: limit})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, r); err != nil {
					b.Fatal(err)
				}
				r.Close()
			}
		})
	}
}
