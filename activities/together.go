package activities

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ironlot/ironlot/internal/fault"
)

// together makes one error of several: Transient only if all of them are,
// so that what an operator must mend is shown at once.
func together(found []error) error {
	var all []*fault.Error
	for _, err := range found {
		if err == nil {
			continue
		}
		f, ok := fault.As(err)
		if !ok {
			return err
		}
		all = append(all, f)
	}
	if len(all) <= 1 {
		return first(all)
	}
	slices.SortStableFunc(all, func(x, y *fault.Error) int { return rank(x) - rank(y) })
	var texts, causes = []string{}, []error{}
	for i, f := range all {
		if f.Class == fault.Transient && all[0].Class != fault.Transient {
			continue // passes by itself; the others do not
		}
		text := f.Message
		if f.Remedy != "" {
			text += " (" + f.Remedy + ")"
		}
		texts, causes = append(texts, fmt.Sprintf("%d. %s", i+1, text)), append(causes, f)
	}
	if len(texts) == 1 {
		return all[0]
	}
	return &fault.Error{Class: all[0].Class, Message: strings.Join(texts, " "), Remedy: "mend all of these, then retry", Cause: errors.Join(causes...)}
}

func first(all []*fault.Error) error {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

func rank(f *fault.Error) int {
	if f.Class == fault.Transient {
		return 1
	}
	return 0
}
