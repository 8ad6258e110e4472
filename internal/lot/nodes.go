package lot

import (
	"fmt"
	"strings"

	"github.com/ironlot/ironlot/internal/run"
)

// defaults checks the defaults on their own, so that a mistake in them is
// found even where every node has a value of its own.
func (c *checker) defaults(s *settings) {
	if s.keys == nil {
		return
	}
	for _, t := range append([]text{s.Config}, s.Patches...) {
		c.file(t)
	}
	if s.SystemDisk.keys != nil {
		c.disk(&s.SystemDisk)
	}
	c.common(&run.Node{}, s)
}

// node gives one node with the defaults applied.
func (c *checker) node(base run.Node, defaults *settings, n *nodeSection) Node {
	node := Node{Run: base, field: n.field, configAt: n.Config.place}
	node.Run.Name = c.label(&n.section, "name", n.Name, 63)
	c.server(&node.Run, n)
	node.Run.Bootstrap, node.firstAt = n.Bootstrap.value, n.Bootstrap.place
	node.Run.Rescue.Port, node.Run.TalosPort, node.Run.Disks.Secondary = 22, 50000, run.Blank
	node.Run.Boot = run.BootPolicy{}.OrDefault()
	config := n.Config
	if !n.has("config") {
		config = defaults.Config
		if !defaults.has("config") {
			c.add(n.at("config"), "is missing; add the path of the machine config here or in defaults")
		}
	}
	node.Config, node.configAt = c.file(config), config.place
	for _, t := range append(append([]text{}, defaults.Patches...), n.Patches...) {
		node.Patches = append(node.Patches, c.file(t))
	}
	node.shared = len(defaults.Patches)
	node.values, node.own = c.values(defaults.Values), c.values(n.Values)

	disk := &n.SystemDisk
	if !n.has("systemDisk") {
		disk = &defaults.SystemDisk
		if !defaults.has("systemDisk") {
			c.add(n.at("systemDisk"), "is missing; say here or in defaults which disk is erased for Talos, such as systemDisk: {smallest: true}")
		}
	}
	if disk.keys != nil {
		node.Run.Disks.System = c.disk(disk)
	}
	c.common(&node.Run, defaults)
	c.common(&node.Run, &n.settings)
	if !base.Lab && (node.Run.Rescue.Port != 22 || node.Run.TalosPort != 50000) {
		c.warn("rescue.port or talosPort differ from 22 and 50000, which every real server uses")
	}
	return node
}

// values gives the values that configs may ask for, by name.
func (c *checker) values(items []valueItem) map[string]string {
	values := map[string]string{}
	for i := range items {
		item := &items[i]
		if item.keys == nil {
			continue
		}
		name := c.must(&item.section, "name", "name: rack", item.Name)
		c.must(&item.section, "value", `value: "12"`, item.Value)
		switch _, twice := values[name]; {
		case !item.Name.set:
		case checkLabel(name, 40) != nil:
			c.add(item.Name.place, "must be lower-case letters, digits and hyphens, at most 40, not %s", quote(name))
		case (run.Node{VLAN: run.VLANAuto}).Values(0)[name] != "" || name == "name" || name == "lot" || name == "zone":
			c.add(item.Name.place, "is a value that every node has already; choose another name")
		case twice:
			c.add(item.Name.place, "is there twice; keep one")
		}
		values[name] = item.Value.value
	}
	return values
}

// server checks ID and name of the rented server.
func (c *checker) server(node *run.Node, n *nodeSection) {
	s := &n.Server
	if !n.has("server") {
		c.add(n.at("server"), "is missing; add it with the server's id and name")
		return
	}
	if s.keys == nil {
		return
	}
	node.ServerID = strings.ToLower(c.must(&s.section, "id", "id: 11111111-2222-4333-8444-555555555555", s.ID))
	node.ServerName = c.must(&s.section, "name", "name: metal-1, as the provider's console shows it", s.Name)
	if s.ID.set {
		c.check(s.ID.place, checkUUID(s.ID.value))
	}
	if s.Name.set && (len(s.Name.value) > 255 || strings.ContainsFunc(s.Name.value, func(r rune) bool { return r < ' ' })) {
		c.add(s.Name.place, "must be the server's name in the provider's console, on one line of up to 255 bytes")
	}
}

// common puts the settings that are given over those of the node.
func (c *checker) common(node *run.Node, s *settings) {
	if t := s.SecondaryDisks; t.set {
		c.check(t.place, checkWord(t.value, []string{string(run.Blank), string(run.Keep)}))
		node.Disks.Secondary = run.Secondary(t.value)
	}
	if t := s.Delivery; t.set {
		c.check(t.place, checkWord(t.value, []string{string(run.ByMaintenance), string(run.ByState)}))
		node.Delivery = run.Delivery(t.value)
	}
	if t := s.VLAN; t.set {
		if t.value != run.VLANAuto {
			c.add(t.place, "must be auto, not %s; a number belongs into the config", quote(t.value))
		}
		node.VLAN = t.value
	}
	if s.Reprovision.set {
		node.Reprovision = s.Reprovision.value
	}
	node.Rescue.Port = c.number(s.Rescue.Port, node.Rescue.Port, 1, 65535)
	if s.Rescue.Fresh.set {
		node.Rescue.Fresh = s.Rescue.Fresh.value
	}
	node.Boot.Reboots = c.number(s.Boot.Reboots, node.Boot.Reboots, 1, 10)
	node.Boot.PowerCycles = c.number(s.Boot.PowerCycles, node.Boot.PowerCycles, 0, 5)
	node.TalosPort = c.number(s.TalosPort, node.TalosPort, 1, 65535)
	t, given := &node.Timeouts, &s.Timeouts
	t.RescueBoot = c.timeout(given.RescueBoot, t.RescueBoot)
	t.Stage = c.timeout(given.Stage, t.Stage)
	t.Write = c.timeout(given.Write, t.Write)
	t.NormalBoot = c.timeout(given.NormalBoot, t.NormalBoot)
	t.Apply = c.timeout(given.Apply, t.Apply)
	t.Ready = c.timeout(given.Ready, t.Ready)
	t.DiskPrep = c.timeout(given.DiskPrep, t.DiskPrep)
	t.Unreachable = c.timeout(given.Unreachable, t.Unreachable)
	c.ready(node, &s.Ready)
}

// disk checks the rule that picks the disk to erase.
func (c *checker) disk(s *diskSection) run.DiskChoice {
	choice := run.DiskChoice{Serial: s.Serial.value, WWN: s.WWN.value, Smallest: s.Smallest.value}
	for _, t := range []text{s.Serial, s.WWN} {
		if t.set {
			c.check(t.place, checkDiskName(t.value))
		}
	}
	if s.ByID.set {
		name, err := parseByID(s.ByID.value)
		c.check(s.ByID.place, err)
		choice.ByID = name
	}
	choice.MinSize, choice.MaxSize = c.size(s.MinSize), c.size(s.MaxSize)

	var exact, rules []string
	for _, key := range []string{"serial", "wwn", "byId"} {
		if s.has(key) {
			exact = append(exact, key)
		}
	}
	rules = append(rules, exact...)
	if s.has("smallest") {
		rules = append(rules, "smallest")
	}
	sized := s.has("minSize") || s.has("maxSize")
	switch {
	case len(rules) > 1:
		c.add(s.place, "has the rules %s; keep one of them", strings.Join(rules, " and "))
	case len(exact) == 1 && sized:
		c.add(s.place, "has %s, which names one disk, and a size beside it; remove the size", exact[0])
	case s.Smallest.set && !s.Smallest.value:
		c.add(s.Smallest.place, "is false, which picks no disk; remove the line or make it true")
	case len(rules) == 0 && !sized:
		c.add(s.place, "has no rule; give one of serial, wwn, byId, smallest, minSize, maxSize")
	case choice.MinSize > 0 && choice.MaxSize > 0 && choice.MinSize > choice.MaxSize:
		c.add(s.MinSize.place, "is larger than maxSize, so no disk fits; swap them")
	}
	return choice
}

func (c *checker) size(t measure) uint64 {
	if !t.set {
		return 0
	}
	size, err := parseSize(t.value)
	c.check(t.place, err)
	return size
}

// shared notes a default that picks one single disk for several nodes.
func (c *checker) shared(defaults *settings, nodes []nodeSection) {
	s := &defaults.SystemDisk
	if !s.has("serial") && !s.has("wwn") && !s.has("byId") {
		return
	}
	users := 0
	for i := range nodes {
		if !nodes[i].has("systemDisk") {
			users++
		}
	}
	if users > 1 {
		c.add(s.place, "names one single disk, and %d nodes would share it; give each node a systemDisk of its own", users)
	}
}

// twice notes nodes that share what only one can have.
func (c *checker) twice(nodes []nodeSection) {
	c.first(nodes)
	first := map[string]int{} // the node that had it first, by what it is
	for i := range nodes {
		n := &nodes[i]
		once := func(what string, t text, value string) {
			key := what + " " + value
			at, seen := first[key]
			switch {
			case !t.set:
			case !seen:
				first[key] = i
			default:
				c.add(t.place, "is the %s of %s as well; every node has its own", what, nodes[at].called())
			}
		}
		once("name", n.Name, n.Name.value)
		once("serial number", n.SystemDisk.Serial, n.SystemDisk.Serial.value)
		once("WWN", n.SystemDisk.WWN, n.SystemDisk.WWN.value)
		once("by-id name", n.SystemDisk.ByID, n.SystemDisk.ByID.value)
	}
	c.sameServer(nodes)
}

// sameServer notes nodes that would be installed on one server: with the same ID,
// with the same name, or with the name that is another's ID. Two servers may have
// one name at the provider; then it does not tell the wrong one from the right.
func (c *checker) sameServer(nodes []nodeSection) {
	first := map[string]int{} // the node that names the server so, by ID or name
	for i := range nodes {
		n := &nodes[i]
		mine := []text{n.Server.ID, n.Server.Name}
		for _, t := range mine {
			at, seen := first[strings.ToLower(t.value)]
			if !t.set || !seen {
				continue
			}
			remedy := "give each node a server of its own"
			if t.field == n.Server.Name.field {
				remedy += ", and servers that have one name other names at the provider"
			}
			c.add(t.place, "is that of %s as well as of %s; %s", nodes[at].called(), n.called(), remedy)
			break // the name of the same server is no further mistake
		}
		for _, t := range mine {
			if _, seen := first[strings.ToLower(t.value)]; t.set && !seen {
				first[strings.ToLower(t.value)] = i
			}
		}
	}
}

// called names a node for a sentence about another one.
func (n *nodeSection) called() string {
	if n.Name.set {
		return fmt.Sprintf("node %s (line %d)", quote(n.Name.value), n.line)
	}
	return fmt.Sprintf("%s (line %d)", n.field, n.line)
}

// first notes a second node that would start a cluster of its own.
func (c *checker) first(nodes []nodeSection) {
	var first *nodeSection
	for i := range nodes {
		switch n := &nodes[i]; {
		case !n.Bootstrap.value:
		case first == nil:
			first = n
		default:
			c.add(n.Bootstrap.place, "is true for %s in line %d as well, and two bootstraps make two clusters; keep one, the other control planes join it",
				first.field, first.Bootstrap.line)
		}
	}
}
