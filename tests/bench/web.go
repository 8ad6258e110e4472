//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/ironlot/ironlot/internal/lab/images"
)

// web serves the image and the programs that a machine needs.
type web struct {
	url    string
	packed int64 // bytes of the zst file
	sha256 string
}

// serve makes the image in dir and serves it with some programs until the
// context ends. The raw image is removed: nobody needs it any more.
func serve(ctx context.Context, dir string, spec images.Spec, programs map[string]string) (*web, error) {
	raw, packed := filepath.Join(dir, "build.raw"), filepath.Join(dir, "image.zst")
	if err := images.Build(raw, spec); err != nil {
		return nil, err
	}
	// As Talos's imager does (siderolabs/talos, pkg/imager/post.go).
	fmt.Fprintln(os.Stderr, "packing the image: a minute or two")
	if _, err := run(ctx, "zstd", "-T0", "--rm", "-18", "--quiet", "--force", "-o", packed, raw); err != nil {
		return nil, err
	}
	info, err := os.Stat(packed)
	if err != nil {
		return nil, err
	}
	sum, err := run(ctx, "sha256sum", packed)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/image.zst", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, packed) })
	for name, path := range programs {
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) })
	}
	// A QEMU machine reaches the addresses of 127.0.0.0/8 but 127.0.0.1.
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.18.%d.1:0", os.Getpid()%200))
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	go server.Serve(listener) //nolint:errcheck // it ends with the context
	return &web{url: "http://" + listener.Addr().String(), packed: info.Size(), sha256: sum[:64]}, nil
}
