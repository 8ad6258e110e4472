package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ironlot/ironlot/internal/listen"
)

// File is one packed image with its digest.
type File struct {
	Format Format
	Path   string
	Size   int64  // bytes
	SHA256 string // of the file as served, hex
}

// Server serves one image in every format. Files are packed when they are
// first asked for.
type Server struct {
	dir       string
	rawSHA256 string
	files     map[Format]func() (File, error)
	web       *http.Server // nil until Listen

	mu       sync.Mutex
	faults   Faults
	resets   int
	requests []Request
}

// Request is a request that the server got.
type Request struct {
	Path  string
	Range string // the Range header
	Agent string // the User-Agent header
}

// New builds the image in a directory of its own.
func New(dir string, spec Spec) (*Server, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := Build(filepath.Join(dir, Raw.FileName()), spec); err != nil {
		return nil, err
	}
	return newServer(dir)
}

// NewFrom serves a raw image that is there already. Nothing is written
// beside it: what is packed goes into the directory.
func NewFrom(dir, raw string) (*Server, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	link := filepath.Join(dir, Raw.FileName())
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.Symlink(raw, link); err != nil {
		return nil, err
	}
	return newServer(dir)
}

// newServer serves the raw image in a directory.
func newServer(dir string) (*Server, error) {
	s := &Server{dir: dir, files: map[Format]func() (File, error){}}
	for _, format := range Formats() {
		s.files[format] = sync.OnceValues(func() (File, error) { return s.prepare(format) })
	}
	file, err := s.File(Raw)
	s.rawSHA256 = file.SHA256
	return s, err
}

// RawSHA256 is the digest of the raw image, hex.
func (s *Server) RawSHA256() string { return s.rawSHA256 }

// File packs the image in a format, once, and gives its digest.
func (s *Server) File(format Format) (File, error) {
	get, ok := s.files[format]
	if !ok {
		return File{}, fmt.Errorf("there is no image format %q", format)
	}
	return get()
}

func (s *Server) prepare(format Format) (File, error) {
	path := filepath.Join(s.dir, format.FileName())
	if format != Raw {
		if err := Compress(filepath.Join(s.dir, Raw.FileName()), path, format); err != nil {
			return File{}, err
		}
	}
	sum, err := digest(path)
	if err != nil {
		return File{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	return File{Format: format, Path: path, Size: info.Size(), SHA256: sum}, nil
}

// Requests lists what was asked for so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Handler serves the files by name, and below /redirect/ a redirect to each.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, format := range Formats() {
		name := "/" + format.FileName()
		mux.HandleFunc("GET "+name, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, format) })
		mux.Handle("GET /redirect"+name, http.RedirectHandler(name, http.StatusFound))
	}
	return mux
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, format Format) {
	s.mu.Lock()
	s.requests = append(s.requests, Request{Path: r.URL.Path, Range: r.Header.Get("Range"), Agent: r.UserAgent()})
	s.mu.Unlock()
	file, err := s.File(format)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("X-Ironlot-Lab", "simulated")
	w.Header().Set("ETag", `"`+file.SHA256[:16]+`"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	s.serveWithFaults(w, r, file)
}

// Listen serves on a TCP address until Close, and gives the base URL.
func (s *Server) Listen(ctx context.Context, addr string) (string, error) {
	listener, err := listen.TCP(ctx, addr)
	if err != nil {
		return "", fmt.Errorf("the image server cannot listen on %s: %w", addr, err)
	}
	s.web = &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go s.web.Serve(listener) //nolint:errcheck // it ends by Close
	return "http://" + listener.Addr().String(), nil
}

// Close ends what Listen began and gives its address back.
func (s *Server) Close() error {
	if s.web == nil {
		return nil
	}
	return s.web.Close()
}
