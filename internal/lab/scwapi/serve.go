package scwapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/ironlot/ironlot/internal/pause"
)

// maxBody bounds a request's body, bytes.
const maxBody = 1 << 20

// request is a request on its way to a handler.
type request struct {
	*http.Request
	api       *API
	operation string // the SDK's name for it, such as RebootServer
}

// handler answers a request. It runs under the API's lock. A nil answer is
// 204 No Content.
type handler func(r *request) (any, *problem)

// serve turns a handler into what net/http wants: headers, authentication,
// faults, the lock, JSON.
func (a *API) serve(operation string, h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, hr *http.Request) {
		r := &request{Request: hr, api: a, operation: operation}
		setHeaders(w.Header())
		if p := a.authenticate(hr); p != nil {
			p.write(w)
			return
		}
		if broken := r.breakBefore(w); broken {
			return
		}
		r.hold("before")
		if hr.Context().Err() != nil {
			return // the client went away before the request had any effect
		}
		answer, p := a.locked(h, r)
		r.hold("after")
		if r.hit(LostAnswer) != nil {
			drop(w)
			return
		}
		if p != nil {
			p.write(w)
			return
		}
		writeJSON(w, http.StatusOK, answer)
	}
}

// locked runs a handler on settled servers.
func (a *API) locked(h handler, r *request) (any, *problem) {
	r.Body = http.MaxBytesReader(nil, r.Body, maxBody)
	body, err := io.ReadAll(r.Body) // before the lock: a slow client holds nobody up
	if err != nil {
		return nil, invalid("body", "the request body cannot be read")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle()
	if zone := r.PathValue("zone"); zone != "" && !slices.Contains(zones(), zone) {
		return nil, notFound()
	}
	if region := r.PathValue("region"); region != "" && !slices.Contains(regions(), region) {
		return nil, notFound()
	}
	return h(r)
}

// authenticate checks the X-Auth-Token header.
func (a *API) authenticate(r *http.Request) *problem {
	token := r.Header.Get("X-Auth-Token")
	if token == "" {
		return unauthenticated("invalid_argument")
	}
	i := slices.IndexFunc(a.keys, func(k Key) bool { return k.SecretKey == token })
	if i < 0 {
		return unauthenticated("not_found")
	}
	if a.keys[i].ReadOnly && r.Method != http.MethodGet {
		return forbidden()
	}
	return nil
}

// breakBefore plays the faults that come before the request has any effect,
// and reports whether that was the end of it.
func (r *request) breakBefore(w http.ResponseWriter) bool {
	if f := r.hit(Slow); f != nil && pause.For(r.Context(), f.Delay) != nil {
		return true
	}
	if r.hit(Reset) != nil {
		drop(w)
		return true
	}
	if f := r.hit(RateLimit); f != nil {
		tooMany(f.RetryAfter).write(w)
		return true
	}
	if f := r.hit(ServerError); f != nil {
		broken(f.Status).write(w)
		return true
	}
	return false
}

// hit draws the fault of a kind for this request, nil for none.
func (r *request) hit(kind FaultKind) *Fault {
	return r.api.faults.hit(kind, r.operation, r.serverID())
}

// serverID is the server that the request is about, empty for none.
func (r *request) serverID() string {
	if server := r.PathValue("server"); server != "" {
		return server
	}
	return r.URL.Query().Get("server_id")
}

// hold lets a test stop the request at a point.
func (r *request) hold(when string) {
	if server := r.serverID(); server != "" && r.api.onHold != nil {
		r.api.onHold(server, r.operation+" "+when)
	}
}

// decode reads the JSON body; an empty one is an empty object.
func (r *request) decode(into any) *problem {
	err := json.NewDecoder(r.Body).Decode(into)
	if err != nil && !errors.Is(err, io.EOF) {
		return invalid("body", "the request body is not the JSON expected")
	}
	return nil
}

// drop resets the connection, as a crash or a firewall would.
func drop(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		// Not a real connection: no answer at all is the next best thing.
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// setHeaders sets what the real gateway sends, and the lab's mark.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Server", "Ironlot Lab (simulated Scaleway API)")
	h.Set("Strict-Transport-Security", "max-age=63072000")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Request-Id", uuid.NewString())
	h.Set(LabHeader, "simulated")
}

// writeJSON writes an answer; nil is 204.
func writeJSON(w http.ResponseWriter, code int, answer any) {
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	body, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, "the lab cannot encode its answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body)
}
