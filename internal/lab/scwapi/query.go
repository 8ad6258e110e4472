package scwapi

import (
	"slices"
	"strconv"
)

// Page sizes: what a request gets that names none, and the most it can have.
const (
	pageSize    = 50
	maxPageSize = 100
)

// page answers a list with the page asked for. Lists are kept in order of
// creation, which is what created_at_asc and no order at all mean.
func page[T any](r *request, name string, all []T) (any, *problem) {
	query := r.URL.Query()
	number, size := 1, pageSize
	for field, into := range map[string]*int{"page": &number, "page_size": &size} {
		value := query.Get(field)
		if value == "" {
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return nil, invalid(field, "must be at least 1")
		}
		*into = n
	}
	size = min(size, maxPageSize)
	list := append([]T{}, all...) // never null
	if query.Get("order_by") == "created_at_desc" {
		slices.Reverse(list)
	}
	start := min(len(list), size*min(number-1, len(list)))
	end := min(len(list), start+size)
	return map[string]any{"total_count": len(all), name: list[start:end]}, nil
}

// identified is what findByID can look up.
type identified interface{ id() string }

// findByID finds the element with an ID.
func findByID[T identified](list []T, id string) (T, bool) {
	for _, element := range list {
		if element.id() == id {
			return element, true
		}
	}
	var none T
	return none, false
}
