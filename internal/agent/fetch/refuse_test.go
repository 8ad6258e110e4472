package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/testenv"
)

func TestRedirects(t *testing.T) {
	t.Parallel()
	file := content(1, 5000)
	target := serve(t, &server{file: file})
	s := serve(t, &server{before: func(_ int, w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, target.URL+"/moved?signature=s3cret", http.StatusFound)
		return true
	}})
	if got, _, err := download(t, s.URL, quick()); err != nil || !bytes.Equal(got, file) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for name, to := range map[string]string{
		"loop":   "/again?token=s3cret",
		"scheme": "ftp://example.org/?token=s3cret",
		"broken": "http://example.org:bad/?token=s3cret%zz",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &server{before: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Location", to)
				w.WriteHeader(http.StatusFound)
				return true
			}})
			_, err := Open(t.Context(), s.URL, quick())
			if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), "s3cret") {
				t.Fatal(err)
			}
			if name != "broken" && fault.ClassOf(err) != fault.NeedsOperator {
				t.Errorf("class %s of %v", fault.ClassOf(err), err)
			}
			if n := len(s.asked()); n > 11 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

func TestDowngrade(t *testing.T) {
	t.Parallel()
	plain := serve(t, &server{file: content(1, 5000)})
	tls := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusMovedPermanently))
	t.Cleanup(tls.Close)
	o := quick()
	o.Client = tls.Client()
	_, err := Open(t.Context(), tls.URL, o)
	if fault.ClassOf(err) != fault.NeedsOperator || err == nil || !strings.Contains(err.Error(), "from https to http") {
		t.Error(err)
	}
	if n := len(plain.asked()); n != 0 {
		t.Errorf("the plain server was asked %d times", n)
	}
}

// TestUntrusted: the certificate is of an authority that nobody knows.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = nil
	tls.StartTLS()
	t.Cleanup(tls.Close)
	_, err := Open(t.Context(), tls.URL, quick())
	if e, ok := fault.As(err); !ok || e.Class != fault.NeedsOperator || !strings.Contains(e.Message, "not trusted") || !strings.Contains(e.Remedy, "http") {
		t.Error(err)
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "image.raw", "/image.raw", "ftp://s3cret@example.org/", "file:///etc/passwd", "http://", "https://:443/x", "http://s3cret@h:%zz/", "http://h/%zz?s3cret"} {
		_, err := Open(t.Context(), raw, quick())
		if e, ok := fault.As(err); !ok || e.Class != fault.NeedsOperator || e.Remedy == "" || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// TestSecrets: nothing of the URL's user, password and query is in an error.
func TestSecrets(t *testing.T) {
	t.Parallel()
	s := serve(t, &server{file: content(1, 5000), cut: func(int) int { return 0 }})
	refused := serve(t, &server{before: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	}})
	for _, base := range []string{s.URL, refused.URL, "http://" + testenv.Nobody()} {
		var logged []string
		o := quick()
		o.Log = func(text string) { logged = append(logged, text) }
		_, _, err := download(t, strings.Replace(base, "://", "://user-s3cret:pass-s3cret@", 1)+"/a/image.raw?X-Signature=s3cret#s3cret", o)
		if err == nil {
			t.Fatal("the download went well")
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			logged = append(logged, fmt.Sprintf("%v %+v", e, e))
		}
		if all := strings.Join(logged, "\n"); strings.Contains(all, "s3cret") || !strings.Contains(all, "/a/image.raw?…") {
			t.Errorf("%s", all)
		}
	}
}

func TestScrub(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`failed to parse Location header "https://u:p@h/x?sig=1": bad`: `failed to parse Location header … bad`,
		`dial tcp 10.0.0.1:80: connect: connection refused`:            `dial tcp 10.0.0.1:80: connect: connection refused`,
		`token=abc went wrong`: `… went wrong`,
	} {
		if got := scrub(errors.New(in)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
