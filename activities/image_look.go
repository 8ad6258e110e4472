package activities

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
	"github.com/ironlot/ironlot/internal/run"
)

// imageLook is what the image's first bytes show.
type imageLook struct {
	format string
	size   int64 // bytes of the download, -1 unknown
}

// Looks at a host name before it counts as one that does not exist: whoever
// mistypes a name must not wait for as long as a network may be away.
const (
	nameLooks = 3
	nameEvery = 2 * time.Second
)

// lookAtImage reads the start of the image, so that an image that is not
// there, or is no image, is known before the server is touched.
func (a *Activities) lookAtImage(ctx context.Context, img run.Image) (imageLook, error) {
	for look := 1; ; look++ {
		seen, err := a.lookOnce(ctx, img)
		dns, ok := errors.AsType[*net.DNSError](err)
		switch {
		case !ok || !dns.IsNotFound:
			return seen, err
		case look == nameLooks:
			return imageLook{}, fault.Operator("correct image.url in the lot file, or the worker's DNS, then retry",
				"the image's host %s does not exist, says the DNS of the worker", dns.Name)
		}
		if err := pause.For(ctx, nameEvery); err != nil {
			return imageLook{}, err
		}
	}
}

// lookOnce is one look.
func (a *Activities) lookOnce(ctx context.Context, img run.Image) (imageLook, error) {
	where := publicURL(img.URL)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, img.URL, nil)
	if err != nil {
		return imageLook{}, fault.Operator("correct image.url in the lot file", "the image's address %s is not usable", where)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		// The client's error repeats the whole address, query included.
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return imageLook{}, fault.Retry("the image at %s cannot be reached from the worker: %w", where, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK:
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= 500:
		return imageLook{}, fault.Retry("the image server answers %s for %s", resp.Status, where)
	default:
		return imageLook{}, fault.Operator("correct image.url in the lot file", "the image server answers %s for %s", resp.Status, where)
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, image.HeadSize))
	if err != nil {
		return imageLook{}, fault.Retry("reading the start of the image at %s failed: %w", where, err)
	}
	format, err := image.Detect(head)
	if err != nil {
		return imageLook{}, fault.Operator("correct image.url in the lot file: it must lead to a raw disk image, plain or as zst, xz or gz",
			"what %s serves is no disk image: %w", where, err)
	}
	return imageLook{format: string(format), size: resp.ContentLength}, nil
}

// publicURL is an address without what may be secret in it.
func publicURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(unreadable)"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
