// Package stage puts the raw image into the rescue system's RAM: downloaded,
// decompressed, checked, sparse.
package stage

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// The files in the RAM directory. The image has its name, and its record,
// only when it is whole.
const (
	imageName   = "image.raw"
	partialName = "image.raw.part"
	recordName  = "image.json"
)

// Image is the path of the staged image in a RAM directory.
func Image(ramDir string) string { return filepath.Join(ramDir, imageName) }

// Find reads the record of the staged image and checks that the image is
// there in its full length. Errors are RescueLost: the image has to be staged
// again.
func Find(ramDir string) (run.Staged, error) {
	var staged run.Staged
	record := filepath.Join(ramDir, recordName)
	p, err := os.ReadFile(record)
	if err != nil {
		return run.Staged{}, fault.Lost("the staged image is gone: %w", err)
	}
	if err := json.Unmarshal(p, &staged); err != nil {
		return run.Staged{}, fault.Lost("the staged image's record %s cannot be read: %w", record, err)
	}
	info, err := os.Stat(Image(ramDir))
	if err != nil {
		return run.Staged{}, fault.Lost("the staged image is gone: %w", err)
	}
	if info.Size() != staged.RawSize {
		return run.Staged{}, fault.Lost("the staged image %s has %d bytes and should have %d", Image(ramDir), info.Size(), staged.RawSize)
	}
	return staged, nil
}

// clearDir removes the image that is there, whole or not: RAM has no room for two.
func clearDir(ramDir string) error {
	var errs []error
	for _, name := range []string{recordName, imageName, partialName} {
		if err := os.Remove(filepath.Join(ramDir, name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fault.Retry("the old staged image cannot be removed: %w", err)
	}
	return nil
}

// publish gives the partial file its name and writes its record.
func publish(ramDir string, staged run.Staged) error {
	p, err := json.Marshal(staged)
	if err != nil {
		return fault.Retry("the staged image's record cannot be written: %w", err)
	}
	record := filepath.Join(ramDir, recordName)
	err = os.Rename(filepath.Join(ramDir, partialName), Image(ramDir))
	if err == nil {
		err = os.WriteFile(record+".new", p, 0o600)
	}
	if err == nil {
		err = os.Rename(record+".new", record)
	}
	if err != nil {
		return fault.Retry("the staged image cannot be published: %w", err)
	}
	return nil
}
