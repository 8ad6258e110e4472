package lot

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// zones are those with Elastic Metal (provider's documentation, 2026-12).
func zones() []string {
	return []string{"fr-par-1", "fr-par-2", "nl-ams-1", "nl-ams-2", "pl-waw-2", "pl-waw-3"}
}

// providers are the companies whose servers Ironlot can drive.
func providers() []string { return []string{"scaleway"} }

// checkLabel tells what keeps s from being a DNS label of at most limit
// letters.
func checkLabel(s string, limit int) error {
	switch {
	case len(s) > limit:
		return fmt.Errorf("has %d letters; use at most %d", len(s), limit)
	case strings.Contains(s, "."):
		return errors.New("must be a name without a domain; leave out the dot and what follows")
	case !regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`).MatchString(s):
		return fmt.Errorf("must be lower-case letters, digits and inner hyphens, not %s", quote(s))
	}
	return nil
}

// checkUUID tells what keeps s from being a server ID.
func checkUUID(s string) error {
	if !regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`).MatchString(s) {
		return fmt.Errorf("must be the server's ID, a UUID such as 11111111-2222-4333-8444-555555555555, not %s", quote(s))
	}
	return nil
}

// parseDigest reads a SHA-256 digest as 64 hexadecimal digits.
func parseDigest(s string) (string, error) {
	lower := strings.ToLower(s)
	if strings.HasPrefix(lower, "sha256:") {
		return "", errors.New(`must be the hexadecimal digits alone; leave out "sha256:"`)
	}
	if !regexp.MustCompile(`^[0-9a-f]+$`).MatchString(lower) {
		return "", fmt.Errorf("must be a SHA-256 digest of 64 hexadecimal digits, not %s", quote(s))
	}
	switch len(lower) {
	case 64:
		return lower, nil
	case 128:
		return "", errors.New("has 128 digits and looks like a SHA-512 digest; give the SHA-256 one, which has 64")
	case 40:
		return "", errors.New("has 40 digits and looks like a SHA-1 digest; give the SHA-256 one, which has 64")
	case 32:
		return "", errors.New("has 32 digits and looks like an MD5 digest; give the SHA-256 one, which has 64")
	default:
		return "", fmt.Errorf("has %d digits, and a SHA-256 digest has 64; copy all of it", len(lower))
	}
}

// checkURL tells what keeps s from being an image's address. It never
// quotes the address, which may hold a password.
func checkURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || strings.ContainsAny(s, " \t\r\n"):
		return errors.New("is not a URL; give one such as https://host/metal-amd64.raw.zst")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("must start with https:// or http://, and the scheme is %s; serve the image over HTTP", quote(u.Scheme))
	case u.User != nil:
		return errors.New("holds a user name or password, which every run's history would show in clear; serve the image without one")
	case u.Hostname() == "":
		return errors.New("names no host; give one such as https://host/metal-amd64.raw.zst")
	case u.Fragment != "" || strings.Contains(s, "#"):
		return errors.New("holds a # part, which a server never sees; leave it out")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("has the port %s; a port is 1 to 65535", quote(port))
		}
	}
	return nil
}

// parseSize reads a size with a unit, such as 400GB or 1.5TiB, as bytes.
func parseSize(s string) (uint64, error) {
	m := regexp.MustCompile(`^([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([A-Za-z]*)$`).FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("must be a size such as 400GB or 1TiB, not %s", quote(s))
	}
	units := map[string]float64{
		"MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15,
		"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50,
	}
	unit, ok := units[m[2]]
	if !ok {
		if m[2] == "" {
			return 0, fmt.Errorf("has no unit: write %[1]sGB or %[1]sGiB, not %[2]s", m[1], quote(s))
		}
		return 0, fmt.Errorf("needs one of the units MB, GB, TB, PB, MiB, GiB, TiB, PiB, such as 400GB, and is %s", quote(s))
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil || n <= 0 || n*unit > math.MaxInt64/2 {
		return 0, fmt.Errorf("must be more than nothing and less than 4000PB, not %s", quote(s))
	}
	return uint64(math.Round(n * unit)), nil
}

// parseTimeout reads a duration such as 20m or 1h30m.
func parseTimeout(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, badTimeout(s)
	}
	if d < time.Second || d > 24*time.Hour {
		return 0, fmt.Errorf("must be from 1s to 24h, not %s", quote(s))
	}
	return d, nil
}

// badTimeout says how a time is written that has no unit, or one in another
// spelling.
func badTimeout(s string) error {
	m := regexp.MustCompile(`^([0-9]{1,6}(?:\.[0-9]{1,3})?) ?([A-Za-z]{0,7})$`).FindStringSubmatch(s)
	if m == nil {
		return fmt.Errorf("must be a time such as 90s, 20m or 1h30m, not %s", quote(s))
	}
	units := map[string]string{
		"s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
		"m": "m", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
		"h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
	}
	if m[2] == "" {
		return fmt.Errorf("has no unit: write %[1]sm for minutes, %[1]ss for seconds or %[1]sh for hours, not %[2]s", m[1], quote(s))
	}
	if unit, ok := units[strings.ToLower(m[2])]; ok {
		return fmt.Errorf("must be written %s%s, not %s", m[1], unit, quote(s))
	}
	return fmt.Errorf("must be a time such as 90s, 20m or 1h30m, not %s", quote(s))
}

// checkDiskName tells what keeps s from being a serial number or WWN.
func checkDiskName(s string) error {
	if len(s) > 128 || !regexp.MustCompile(`^[!-~]+( [!-~]+)*$`).MatchString(s) {
		return fmt.Errorf("must be up to 128 printable letters as `lsblk -o NAME,SERIAL,WWN` shows them, not %s", quote(s))
	}
	return nil
}

// parseByID reads a name or path below /dev/disk/by-id.
func parseByID(s string) (string, error) {
	name := strings.TrimPrefix(s, "/dev/disk/by-id/")
	switch {
	case strings.HasPrefix(name, "/dev/"):
		return "", fmt.Errorf("must be below /dev/disk/by-id, and %s may name another disk at the next boot; use serial instead", quote(s))
	case strings.Contains(name, "/") || checkDiskName(name) != nil:
		return "", fmt.Errorf("must be a name or path below /dev/disk/by-id, not %s", quote(s))
	case regexp.MustCompile(`-part[0-9]+$`).MatchString(name):
		return "", errors.New("names a partition; name the whole disk, without -partN")
	}
	return name, nil
}

// checkWord tells that s is not one of a few words.
func checkWord(s string, words []string) error {
	if slices.Contains(words, s) {
		return nil
	}
	return errors.New(unknownWord(s, words))
}
