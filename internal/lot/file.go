package lot

import (
	"strconv"

	"go.yaml.in/yaml/v3"
)

// The names that every lot file starts with.
const (
	APIVersion = "ironlot.dev/v1"
	Kind       = "Lot"
)

// file is the lot file as written: one struct a mapping, one field a key.
// Where a key may be left out, its section knows whether it was there.
type file struct {
	section
	APIVersion text          `yaml:"apiVersion"`
	Kind       text          `yaml:"kind"`
	Name       text          `yaml:"name"`
	Provider   text          `yaml:"provider"`
	Zone       text          `yaml:"zone"`
	Lab        flag          `yaml:"lab"`
	Image      imageSection  `yaml:"image"`
	Cluster    clusterPart   `yaml:"cluster"`
	Defaults   settings      `yaml:"defaults"`
	Rollout    rolloutPart   `yaml:"rollout"`
	Nodes      []nodeSection `yaml:"nodes"`
}

type imageSection struct {
	section
	URL       text `yaml:"url"`
	SHA256    text `yaml:"sha256"`
	RawSHA256 text `yaml:"rawSha256"`
	Verify    text `yaml:"verify"`
}

type clusterPart struct {
	section
	Talosconfig text `yaml:"talosconfig"`
	Context     text `yaml:"context"`
	Kubeconfig  text `yaml:"kubeconfig"`
}

type rolloutPart struct {
	section
	Parallel number `yaml:"parallel"`
	Canary   number `yaml:"canary"`
	MaxStuck number `yaml:"maxStuck"`
}

// settings are the keys that defaults and every node share.
type settings struct {
	section
	Config         text         `yaml:"config"`
	Patches        []text       `yaml:"patches"`
	SystemDisk     diskSection  `yaml:"systemDisk"`
	SecondaryDisks text         `yaml:"secondaryDisks"`
	Delivery       text         `yaml:"delivery"`
	VLAN           text         `yaml:"vlan"`
	Values         []valueItem  `yaml:"values"`
	Reprovision    flag         `yaml:"reprovision"`
	Rescue         rescuePart   `yaml:"rescue"`
	Boot           bootPart     `yaml:"boot"`
	TalosPort      number       `yaml:"talosPort"`
	Timeouts       timeoutsPart `yaml:"timeouts"`
	Ready          readyPart    `yaml:"ready"`
}

type nodeSection struct {
	Name      text          `yaml:"name"`
	Server    serverSection `yaml:"server"`
	Bootstrap flag          `yaml:"bootstrap"`
	settings
}

// valueItem is a name and what it stands for.
type valueItem struct {
	section
	Name  text `yaml:"name"`
	Value text `yaml:"value"`
}

type serverSection struct {
	section
	ID   text `yaml:"id"`
	Name text `yaml:"name"`
}

type diskSection struct {
	section
	Serial   text    `yaml:"serial"`
	WWN      text    `yaml:"wwn"`
	ByID     text    `yaml:"byId"`
	Smallest flag    `yaml:"smallest"`
	MinSize  measure `yaml:"minSize"`
	MaxSize  measure `yaml:"maxSize"`
}

type rescuePart struct {
	section
	Port  number `yaml:"port"`
	Fresh flag   `yaml:"fresh"`
}

type bootPart struct {
	section

	Reboots     number `yaml:"reboots"`
	PowerCycles number `yaml:"powerCycles"`
}

type readyPart struct {
	section
	Hold       measure     `yaml:"hold"`
	Accept     []text      `yaml:"accept"`
	Labels     []valueItem `yaml:"labels"`
	ProviderID text        `yaml:"providerID"`
}

type timeoutsPart struct {
	section
	RescueBoot measure `yaml:"rescueBoot"`
	Stage      measure `yaml:"stage"`
	Write      measure `yaml:"write"`
	NormalBoot measure `yaml:"normalBoot"`
	Apply      measure `yaml:"apply"`
	Ready      measure `yaml:"ready"`

	DiskPrep    measure `yaml:"diskPrep"`
	Unreachable measure `yaml:"unreachable"`
}

// text is a value that must be a string. A bare number is refused: YAML
// would read 0x50 or 1e5 as something else than what stands there.
type text struct {
	place
	set   bool
	value string
}

func (t *text) take(n *yaml.Node, at place) string {
	if n.ShortTag() != "!!str" {
		return "must be text, and YAML reads " + quote(n.Value) + " as something else; put it in quotes"
	}
	if n.Value == "" {
		return "is empty; give a value, or remove the line"
	}
	*t = text{at, true, n.Value}
	return ""
}

// measure is a number with a unit. One without is taken as well, so that it can
// be told what it lacks.
type measure struct{ text }

func (m *measure) take(n *yaml.Node, at place) string {
	if tag := n.ShortTag(); tag != "!!int" && tag != "!!float" {
		return m.text.take(n, at)
	}
	m.text = text{at, true, n.Value}
	return ""
}

// flag is true or false.
type flag struct {
	place
	set, value bool
}

func (f *flag) take(n *yaml.Node, at place) string {
	value, err := strconv.ParseBool(n.Value)
	if n.ShortTag() != "!!bool" || err != nil {
		return "must be true or false, not " + quote(n.Value)
	}
	*f = flag{at, true, value}
	return ""
}

// number is a whole number.
type number struct {
	place
	set   bool
	value int
}

func (m *number) take(n *yaml.Node, at place) string {
	value, err := strconv.Atoi(n.Value)
	if n.ShortTag() != "!!int" || err != nil {
		return "must be a whole number, not " + quote(n.Value)
	}
	*m = number{at, true, value}
	return ""
}
