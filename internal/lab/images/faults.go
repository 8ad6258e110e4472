package images

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// Faults are what the image server gets wrong. The zero value is a good
// server.
type Faults struct {
	Truncate       int64 // serve only that many bytes, as if the file ended there
	ResetAfter     int64 // cut the connection after that many bytes of an answer …
	Resets         int   // … so many times
	HTML           bool  // answer 200 with an HTML page
	NoRanges       bool  // ignore Range headers
	ChangingETag   bool  // another ETag with every answer
	BytesPerSecond int64 // slow; 0: as fast as it goes. It changes for answers under way, too
}

// SetFaults changes the faults from the next request on.
func (s *Server) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults, s.resets = f, f.Resets
}

// takeFaults gives the faults for one answer; a reset is used up by it.
func (s *Server) takeFaults() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.faults
	if s.resets == 0 {
		f.ResetAfter = 0
	} else {
		s.resets--
	}
	return f
}

// rate is how slow the server is now, in bytes a second.
func (s *Server) rate() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.BytesPerSecond
}

func (s *Server) serveWithFaults(w http.ResponseWriter, r *http.Request, file File) {
	faults := s.takeFaults()
	if faults.HTML {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintln(w, "<!DOCTYPE html>\n<html><head><title>Please log in</title></head></html>")
		return
	}
	f, err := os.Open(file.Path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer f.Close()
	size := file.Size
	if faults.Truncate > 0 {
		size = min(size, faults.Truncate)
	}
	if faults.NoRanges {
		r.Header.Del("Range")
	}
	if faults.ChangingETag {
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, time.Now().UnixNano()))
	}
	out := &faultyWriter{ResponseWriter: w, rate: s.rate, resetAfter: faults.ResetAfter}
	http.ServeContent(out, r, "", time.Time{}, io.NewSectionReader(f, 0, size))
}

// faultyWriter slows an answer down or cuts it.
type faultyWriter struct {
	http.ResponseWriter
	rate       func() int64
	resetAfter int64
	sent       int64
}

// Write sends a part of the answer.
func (w *faultyWriter) Write(p []byte) (int, error) {
	if w.resetAfter > 0 && w.sent+int64(len(p)) > w.resetAfter {
		n, _ := w.ResponseWriter.Write(p[:w.resetAfter-w.sent])
		w.sent += int64(n)
		return n, w.cut()
	}
	n, err := w.ResponseWriter.Write(p)
	w.sent += int64(n)
	if rate := w.rate(); rate > 0 {
		time.Sleep(time.Duration(int64(n) * int64(time.Second) / rate)) //nolint:forbidigo // it is the fault
	}
	return n, err
}

// cut resets the connection as a dying server would.
func (w *faultyWriter) cut() error {
	control := http.NewResponseController(w.ResponseWriter)
	if err := control.Flush(); err != nil {
		return err
	}
	conn, _, err := control.Hijack()
	if err != nil {
		return err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // RST instead of FIN
	}
	conn.Close()
	return net.ErrClosed
}
