package image

import (
	"errors"
	"fmt"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// What can be wrong with an image.
var (
	// ErrNotImage says that something else is served than a disk image.
	ErrNotImage = errors.New("this is not a raw disk image")
	// ErrCorrupt says that the image is cut off or damaged. Another
	// download may help, if the server's file is whole.
	ErrCorrupt = errors.New("the image is cut off or damaged")
	// ErrTooLarge says that the raw image is larger than the caller allows.
	ErrTooLarge = errors.New("the raw image is too large")
)

// Another ends a remedy that names another image. The digest is a person's word:
// without one the image must be that of the lot's first node, which this one is
// not.
const Another = "with its digest (`image.sha256`) in the lot file, and give that with " + run.RetryWithFile

func notImage(format string, args ...any) error {
	return problem(ErrNotImage, "set the image URL to a metal raw disk image (raw, or raw.zst, raw.xz, raw.gz)", format, args...)
}

func corrupt(format string, args ...any) error {
	return problem(ErrCorrupt, "check that the file on the image server is whole, then retry", format, args...)
}

func tooLarge(format string, args ...any) error {
	return problem(ErrTooLarge, "check that the image URL names a Talos disk image", format, args...)
}

func problem(kind error, remedy, format string, args ...any) error {
	err := fmt.Errorf("%w: "+format, append([]any{kind}, args...)...)
	return &fault.Error{Class: fault.NeedsOperator, Message: err.Error(), Remedy: remedy, Cause: err}
}

// within says that a problem lies inside a compressed file.
func within(format Format, err error) error {
	e, ok := fault.As(err)
	if !ok {
		return err
	}
	return &fault.Error{Class: e.Class, Message: "inside the " + string(format) + " file: " + e.Message, Remedy: e.Remedy, Cause: err}
}
