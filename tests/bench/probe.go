//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironlot/ironlot/internal/agent/image"
)

// limits are how long each part of the work takes with nothing else done.
type limits struct {
	Download   time.Duration // the zst file, thrown away
	Decompress time.Duration // out of RAM, thrown away
	Digest     time.Duration // SHA-256 of the zst file
	RawDigest  time.Duration // SHA-256 of the raw image
	WriteData  time.Duration // so many bytes as the image has data
	WriteAll   time.Duration // so many bytes as the raw image has
	Read       time.Duration // so many bytes as the raw image has, past the cache
	Compare    time.Duration // the same, in RAM
}

const probeChunk = 4 << 20

// probe measures the limits on the machine that it runs on: it gets the URL of
// the zst file, the disk, which it writes over, and how many bytes of the
// image are data.
func probe(args []string) error {
	if len(args) != 3 {
		return errors.New("probe wants URL DISK BYTES")
	}
	data, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	var l limits
	packed, err := download(args[0])
	if err != nil {
		return err
	}
	if l.Download, err = stopwatch(func() error { return discard(args[0]) }); err != nil {
		return err
	}
	var size int64
	if l.Decompress, err = stopwatch(func() error {
		r, err := image.Open(bytes.NewReader(packed), image.Options{Limit: 1 << 40, Proven: true})
		if err != nil {
			return err
		}
		defer r.Close()
		size, err = drain(r)
		return err
	}); err != nil {
		return err
	}
	l.Digest, _ = stopwatch(func() error { return digest(int64(len(packed))) })
	l.RawDigest, _ = stopwatch(func() error { return digest(size) })
	if err := l.probeDisk(args[1], data, size); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(l)
}

func stopwatch(do func() error) (time.Duration, error) {
	start := time.Now()
	err := do()
	return time.Since(start), err
}

// drain reads an image as the agent does.
func drain(r *image.Reader) (size int64, err error) {
	a := r.Ahead(1<<20, 1)
	defer a.Close()
	for {
		data, zeros, err := a.Next()
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
		size += int64(len(data)) + zeros
	}
}

func get(url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return resp.Body, nil
}

func download(url string) ([]byte, error) {
	body, err := get(url)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

func discard(url string) error {
	body, err := get(url)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, body, make([]byte, 1<<20))
	return err
}

func digest(size int64) error {
	chunk, sum := make([]byte, 1<<20), sha256.New()
	for ; size > 0; size -= int64(len(chunk)) {
		sum.Write(chunk[:min(size, int64(len(chunk)))])
	}
	sum.Sum(nil)
	return nil
}

// probeDisk moves bytes past the cache.
func (l *limits) probeDisk(path string, data, size int64) error {
	disk, err := os.OpenFile(path, os.O_RDWR|unix.O_DIRECT, 0) //nolint:gosec // the disk that bench itself names
	if err != nil {
		return err
	}
	defer disk.Close()
	// Pages of the kernel are aligned as direct transfers want it.
	chunk, err := unix.Mmap(-1, 0, probeChunk, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	for i := range chunk { // no zeros: QEMU would leave them out
		chunk[i] = byte(i*7 + i>>8)
	}
	move := func(transfer func([]byte, int64) (int, error), size int64) func() error {
		return func() error {
			for off := int64(0); off+probeChunk <= size; off += probeChunk {
				if _, err := transfer(chunk, off); err != nil {
					return err
				}
			}
			return nil
		}
	}
	same := append([]byte(nil), chunk...)
	compare := func(p []byte, _ int64) (int, error) {
		if !bytes.Equal(p, same) {
			return 0, errors.New("RAM is broken")
		}
		return len(p), nil
	}
	for _, one := range []struct {
		into *time.Duration
		do   func() error
	}{{&l.Compare, move(compare, size)}, {&l.WriteAll, move(disk.WriteAt, size)}, {&l.WriteData, move(disk.WriteAt, data)}, {&l.Read, move(disk.ReadAt, size)}} {
		if *one.into, err = stopwatch(one.do); err != nil {
			return err
		}
	}
	return nil
}
