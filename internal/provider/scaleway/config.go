package scaleway

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/scaleway/scaleway-sdk-go/scw"
	"github.com/scaleway/scaleway-sdk-go/validation"
	"go.yaml.in/yaml/v3"

	"github.com/ironlot/ironlot/internal/fault"
)

// Config says how to reach the API and as whom. The zero value reads what
// the provider's own tools read: the config file, then the SCW_* environment
// over it.
type Config struct {
	Version string        // of Ironlot, for the user agent
	File    string        // config file; empty: where the SDK looks for it
	Profile string        // empty: SCW_PROFILE, then the file's active_profile
	Timeout time.Duration // of one request; 0: 30 s, as in the SDK

	// Credentials, when set, stand alone: neither file nor environment is
	// read.
	Credentials *Credentials
}

// Credentials are an API key and the place that accepts it.
type Credentials struct {
	AccessKey string
	SecretKey string
	APIURL    string // empty: the real API
}

// String keeps the secret key out of logs.
func (c Credentials) String() string { return "access key " + c.AccessKey }

// GoString keeps the secret key out of logs.
func (c Credentials) GoString() string { return c.String() }

// remedyCredentials says how to give credentials.
const remedyCredentials = "run `scw init`, or set SCW_ACCESS_KEY and SCW_SECRET_KEY"

// profile gives the settings to use, checked. Errors are NeedsOperator.
func (cfg Config) profile() (*scw.Profile, error) {
	if c := cfg.Credentials; c != nil {
		p := &scw.Profile{AccessKey: &c.AccessKey, SecretKey: &c.SecretKey}
		if c.APIURL != "" {
			p.APIURL = &c.APIURL
		}
		return p, check(p, "the credentials given")
	}
	fromFile, where, err := cfg.fileProfile()
	if err != nil {
		return nil, err
	}
	p := scw.MergeProfiles(fromFile, environment())
	return p, check(p, "the environment and "+where)
}

// fileProfile reads the config file and says where it looked. A file that
// does not exist is an empty one, unless it was asked for.
func (cfg Config) fileProfile() (*scw.Profile, string, error) {
	path, file, err := cfg.readFile()
	if err != nil {
		return nil, "", err
	}
	if file == nil {
		return &scw.Profile{}, path + " (which does not exist)", nil
	}
	name := cfg.Profile
	if name == "" {
		name = os.Getenv(scw.ScwActiveProfileEnv)
	}
	if name == "" && file.ActiveProfile != nil {
		name = *file.ActiveProfile
	}
	if name == "" {
		name = scw.DefaultProfileName
	}
	p, ok := file.Profiles[name]
	if name == scw.DefaultProfileName {
		return &file.Profile, path, nil
	}
	if !ok || p == nil {
		return nil, "", fault.Operator("name one of its profiles in SCW_PROFILE",
			"the Scaleway config file %s has no profile %q", path, name)
	}
	return scw.MergeProfiles(&file.Profile, p), fmt.Sprintf("profile %q of %s", name, path), nil
}

// readFile decodes the config file into the SDK's own type. The SDK's loader
// is not used: it prints to standard output, and its errors quote the file,
// secret key included.
func (cfg Config) readFile() (string, *scw.Config, error) {
	asked := cfg.File != "" || os.Getenv(scw.ScwConfigPathEnv) != ""
	path := cfg.File
	if path == "" {
		path = scw.GetConfigPath()
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !asked {
		// The SDK knows the file under both extensions.
		if other, e := os.ReadFile(strings.TrimSuffix(path, ".yaml") + ".yml"); e == nil {
			content, err = other, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) && !asked {
		return path, nil, nil
	}
	if err != nil {
		return path, nil, fault.Operator("check SCW_CONFIG_PATH and the file's permissions",
			"cannot read the Scaleway config file: %w", err)
	}
	file := &scw.Config{}
	if err := yaml.Unmarshal(content, file); err != nil {
		return path, nil, fault.Operator("check it with `scw config validate`",
			"the Scaleway config file %s is not a valid YAML config", path)
	}
	return path, file, nil
}

// environment is the profile in SCW_* variables. A variable that is set but
// empty, as container tools like to leave them, counts as not set.
func environment() *scw.Profile {
	p := scw.LoadEnvProfile()
	for _, field := range []**string{
		&p.AccessKey, &p.SecretKey, &p.APIURL, &p.S3Endpoint, &p.DefaultOrganizationID,
		&p.DefaultProjectID, &p.DefaultRegion, &p.DefaultZone, &p.UserAgent,
	} {
		if *field != nil && **field == "" {
			*field = nil
		}
	}
	return p
}

// check refuses what the SDK would refuse with the secret in its error text.
func check(p *scw.Profile, where string) error {
	var missing []string
	if p.AccessKey == nil || *p.AccessKey == "" {
		missing = append(missing, "access key (SCW_ACCESS_KEY, access_key)")
	}
	if p.SecretKey == nil || *p.SecretKey == "" {
		missing = append(missing, "secret key (SCW_SECRET_KEY, secret_key)")
	}
	if len(missing) > 0 {
		return fault.Operator(remedyCredentials, "found no Scaleway %s in %s", strings.Join(missing, " and no "), where)
	}
	if !validation.IsAccessKey(*p.AccessKey) {
		return fault.Operator(remedyCredentials,
			"the Scaleway access key in %s does not have the form SCWXXXXXXXXXXXXXXXXX", where)
	}
	if !validation.IsSecretKey(*p.SecretKey) {
		return fault.Operator(remedyCredentials, "the Scaleway secret key in %s is not a UUID", where)
	}
	return checkURL(p, where)
}

// checkURL refuses an API URL that cannot be one.
func checkURL(p *scw.Profile, where string) error {
	if p.APIURL == nil {
		return nil
	}
	u, err := url.Parse(*p.APIURL)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil {
		return fault.Operator("set SCW_API_URL to something like https://api.scaleway.com, or unset it",
			"the Scaleway API URL in %s is not an http(s) URL without credentials", where)
	}
	trimmed := strings.TrimRight(*p.APIURL, "/")
	p.APIURL = &trimmed
	return nil
}
