package lot_test

import "strings"

// mistake is a lot file with something wrong: a text of its own, or the good
// one with old replaced by new.
type mistake struct {
	name     string
	text     string
	old, new string
	want     []string
	schema   bool // the schema refuses it as well
}

func mistakes() []mistake {
	return append(append(shapeMistakes(), valueMistakes()...), kubernetesMistakes()...)
}

// shapeMistakes are those of YAML and of the file's structure.
func shapeMistakes() []mistake {
	return []mistake{
		{name: "empty", text: " \n", want: []string{"lot.yaml: is empty; `starter schema` and the examples show what belongs into a lot file"}},
		{name: "comments", text: "# nothing\n", want: []string{"lot.yaml: holds no value; `starter schema` and the examples show what belongs into a lot file"}},
		{name: "list", text: "- a\n", want: []string{"lot.yaml:1:1: must be a mapping (key: value lines), not a list"}, schema: true},
		{name: "word", text: "hello\n", want: []string{`lot.yaml:1:1: must be a mapping (key: value lines), not "hello"`}, schema: true},
		{name: "all missing", text: "name: x\n", want: []string{
			`lot.yaml:1:1: apiVersion: is missing; add "apiVersion: ironlot.dev/v1"`,
			`lot.yaml:1:1: kind: is missing; add "kind: Lot"`,
			"lot.yaml:1:1: cluster: is missing; add it with the path of the cluster's talosconfig",
			"lot.yaml:1:1: zone: is missing; add it, such as zone: fr-par-2",
			"lot.yaml:1:1: image: is missing; add it with the url of a Talos disk image",
			"lot.yaml:1:1: nodes: names no server; list at least one",
		}, schema: true},
		{name: "not UTF-8", text: "name: \xff\n", want: []string{"lot.yaml: is not UTF-8 text; save it as UTF-8"}},
		{name: "two documents", text: good + "---\nkind: Lot\n", want: []string{"lot.yaml:26:1: starts a second document; write one lot a file"}},
		{name: "a document behind an empty one", text: good + "---\n---\nkind: Lot\n", want: []string{"lot.yaml:27:1: starts a second document; write one lot a file"}},
		{name: "broken second document", text: good + "---\n}\n", want: []string{"lot.yaml:26:1: is not valid YAML near this place: did not find expected node content; correct the file"}},
		{name: "tab", old: "  url: https", new: "\turl: https", want: []string{"lot.yaml:6:1: is indented with a tab, which YAML does not allow; use spaces"}},
		{name: "syntax", old: "zone: fr-par-2", new: "zone: [fr-par-2", want: []string{"lot.yaml:3:1: is not valid YAML near this place: did not find expected ',' or ']'; correct the file"}},
		{name: "unknown anchor", old: "zone: fr-par-2", new: "zone: *none", want: []string{"lot.yaml: is not valid YAML near this place: unknown anchor 'none' referenced; correct the file"}},
		{name: "unknown key near", old: "secondaryDisks:", new: "secondaryDisk:", want: []string{"lot.yaml:23:5: nodes[1].secondaryDisk: is not a key here; did you mean secondaryDisks?"}, schema: true},
		{name: "unknown key far", old: "cluster:\n", new: "cluster:\n  endpoint: https://10.0.0.1:6443\n", want: []string{"lot.yaml:9:3: cluster.endpoint: is not a key here; the keys are context, kubeconfig, talosconfig"}, schema: true},
		{name: "twice", old: "zone: fr-par-2\n", new: "zone: fr-par-2\nname: rack-2\n", want: []string{"lot.yaml:5:1: name: is given twice, first in line 3; remove one"}},
		{name: "key is a list", old: "zone: fr-par-2\n", new: "zone: fr-par-2\n? [a, b]\n: c\n", want: []string{"lot.yaml:5:3: holds a key that is not a plain word"}},
		{name: "null", old: "zone: fr-par-2", new: "zone:", want: []string{"lot.yaml:4:6: zone: has no value; give one, or remove the line"}, schema: true},
		{name: "null section", old: "image:\n  url: https://images.example/metal-amd64.raw.zst\n  sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF\n", new: "image:\n", want: []string{"lot.yaml:5:7: image: has no value; give one, or remove the line"}, schema: true},
		{name: "no nodes", text: good[:len(good)-len(nodesOf(good))] + "nodes: []\n", want: []string{"lot.yaml:14:1: nodes: names no server; list at least one"}, schema: true},
		{name: "nodes is a word", text: good[:len(good)-len(nodesOf(good))] + "nodes: three\n", want: []string{`lot.yaml:14:8: nodes: must be a list ("- " lines), not "three"`}, schema: true},
		{name: "a node is a word", text: good[:len(good)-len(nodesOf(good))] + "nodes: [cp-1]\n", want: []string{`lot.yaml:14:9: nodes[0]: must be a mapping (key: value lines), not "cp-1"`}, schema: true},
		{name: "mapping for word", old: "name: rack-1", new: "name: {a: b}", want: []string{"lot.yaml:3:7: name: must be a single value, not a mapping"}, schema: true},
		{name: "word for mapping", old: "systemDisk: {smallest: true}", new: "systemDisk: smallest", want: []string{`lot.yaml:13:15: defaults.systemDisk: must be a mapping (key: value lines), not "smallest"`}, schema: true},
		{name: "word for list", old: "patches: [all.yaml]", new: "patches: all.yaml", want: []string{`lot.yaml:12:12: defaults.patches: must be a list ("- " lines), not "all.yaml"`}, schema: true},
		{name: "number for text", old: "name: rack-1", new: "name: 17", want: []string{`lot.yaml:3:7: name: must be text, and YAML reads "17" as something else; put it in quotes`}, schema: true},
		{name: "yes for true", old: "reprovision: true", new: "reprovision: yes", want: []string{`lot.yaml:24:18: nodes[1].reprovision: must be true or false, not "yes"`}, schema: false},
		{name: "text for number", old: "nodes:\n", new: "rollout: {parallel: many}\nnodes:\n", want: []string{`lot.yaml:14:21: rollout.parallel: must be a whole number, not "many"`}, schema: true},
		{name: "merge of nothing", old: "timeouts: {write: 45m}", new: "timeouts: {<<: 45m}", want: []string{"lot.yaml:19:20: nodes[0].timeouts: << must name an anchored mapping without a << of its own"}},
		{name: "recursive alias", old: "timeouts: {write: 45m}", new: "timeouts: &t {write: *t}", want: []string{"lot.yaml:19:26: nodes[0].timeouts.write: must be a single value, not a mapping"}},
		{name: "recursive merge", old: "timeouts: {write: 45m}", new: "timeouts: &t {<<: *t}", want: []string{"lot.yaml:19:23: nodes[0].timeouts: << must name an anchored mapping without a << of its own"}},
		{name: "several", old: "kind: Lot\nname: rack-1\nzone: fr-par-2", new: "kind: Pallet\nname: Rack_1\nzone: fr-par-3\ncolour: red", want: []string{
			`lot.yaml:2:7: kind: must be Lot, not "Pallet"`,
			`lot.yaml:3:7: name: must be lower-case letters, digits and inner hyphens, not "Rack_1"`,
			`lot.yaml:4:7: zone: must be a zone with Elastic Metal servers (fr-par-1, fr-par-2, nl-ams-1, nl-ams-2, pl-waw-2, pl-waw-3), not "fr-par-3"`,
			"lot.yaml:5:1: colour: is not a key here; the keys are apiVersion, cluster, defaults, image, kind, lab, name, nodes, provider, rollout, zone",
		}, schema: true},
	}
}

// valueMistakes are those of single values.
func valueMistakes() []mistake {
	const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF"
	const url = "https://images.example/metal-amd64.raw.zst"
	const disk = "systemDisk: {minSize: 400GB, maxSize: 1TiB}"
	const id = "11111111-2222-4333-8444-555555555502"
	return []mistake{
		{name: "version", old: "ironlot.dev/v1", new: "ironlot.dev/v2", want: []string{`lot.yaml:1:13: apiVersion: must be ironlot.dev/v1, not "ironlot.dev/v2"`}, schema: true},
		{name: "name", old: "name: rack-1", new: "name: rack-1-", want: []string{`lot.yaml:3:7: name: must be lower-case letters, digits and inner hyphens, not "rack-1-"`}, schema: true},
		{name: "name too long", old: "name: rack-1", new: "name: a2345678901234567890123456789012345678901", want: []string{"lot.yaml:3:7: name: has 41 letters; use at most 40"}, schema: true},
		{name: "provider", old: "zone:", new: "provider: scalway\nzone:", want: []string{`lot.yaml:4:11: provider: must be one of scaleway, not "scalway"; did you mean scaleway?`}, schema: true},
		{name: "zone", old: "fr-par-2", new: "fr-par-3", want: []string{`lot.yaml:4:7: zone: must be a zone with Elastic Metal servers (fr-par-1, fr-par-2, nl-ams-1, nl-ams-2, pl-waw-2, pl-waw-3), not "fr-par-3"`}, schema: true},
		{name: "zone of a far land", old: "fr-par-2", new: "us-east-1", want: []string{`lot.yaml:4:7: zone: must be a zone with Elastic Metal servers (fr-par-1, fr-par-2, nl-ams-1, nl-ams-2, pl-waw-2, pl-waw-3), not "us-east-1"`}, schema: true},
		{name: "digest short", old: digest, new: digest[:63], want: []string{"lot.yaml:7:11: image.sha256: has 63 digits, and a SHA-256 digest has 64; copy all of it"}, schema: true},
		{name: "digest not hex", old: digest, new: "z" + digest[1:], want: []string{`lot.yaml:7:11: image.sha256: must be a SHA-256 digest of 64 hexadecimal digits, not "z123456789abcdef0123456789abcdef0123456789abc..."`}, schema: true},
		{name: "sha512", old: digest, new: digest + digest, want: []string{"lot.yaml:7:11: image.sha256: has 128 digits and looks like a SHA-512 digest; give the SHA-256 one, which has 64"}, schema: true},
		{name: "sha1", old: digest, new: digest[:40], want: []string{"lot.yaml:7:11: image.sha256: has 40 digits and looks like a SHA-1 digest; give the SHA-256 one, which has 64"}, schema: true},
		{name: "md5", old: digest, new: digest[:32], want: []string{"lot.yaml:7:11: image.sha256: has 32 digits and looks like an MD5 digest; give the SHA-256 one, which has 64"}, schema: true},
		{name: "digest prefix", old: digest, new: "sha256:" + digest, want: []string{`lot.yaml:7:11: image.sha256: must be the hexadecimal digits alone; leave out "sha256:"`}, schema: true},
		{name: "digest even", old: digest, new: digest[:62], want: []string{"lot.yaml:7:11: image.sha256: has 62 digits, and a SHA-256 digest has 64; copy all of it"}, schema: true},
		{name: "URL scheme", old: url, new: "s3://bucket/x.raw", want: []string{`lot.yaml:6:8: image.url: must start with https:// or http://, and the scheme is "s3"; serve the image over HTTP`}, schema: true},
		{name: "URL path", old: url, new: "./metal.raw", want: []string{`lot.yaml:6:8: image.url: must start with https:// or http://, and the scheme is ""; serve the image over HTTP`}, schema: true},
		{name: "URL host", old: url, new: "https:///x.raw", want: []string{"lot.yaml:6:8: image.url: names no host; give one such as https://host/metal-amd64.raw.zst"}, schema: true},
		{name: "URL password", old: url, new: "https://me:hunter2@images.example/x.raw", want: []string{"lot.yaml:6:8: image.url: holds a user name or password, which every run's history would show in clear; serve the image without one"}, schema: true},
		{name: "URL port", old: url, new: "https://images.example:99999/x.raw", want: []string{`lot.yaml:6:8: image.url: has the port "99999"; a port is 1 to 65535`}},
		{name: "URL fragment", old: url, new: url + "#top", want: []string{"lot.yaml:6:8: image.url: holds a # part, which a server never sees; leave it out"}, schema: true},
		{name: "URL broken", old: url, new: "'https://images example/x'", want: []string{"lot.yaml:6:8: image.url: is not a URL; give one such as https://host/metal-amd64.raw.zst"}, schema: true},
		{name: "server ID", old: id, new: "metal-2", want: []string{`lot.yaml:21:18: nodes[1].server.id: must be the server's ID, a UUID such as 11111111-2222-4333-8444-555555555555, not "metal-2"`}, schema: true},
		{name: "server ID twice", old: id, new: "11111111-2222-4333-8444-55555555550a", want: []string{"lot.yaml:21:18: nodes[1].server.id: is that of node \"cp-1\" (line 15) as well as of node \"worker-1\" (line 20); give each node a server of its own"}},
		{name: "server without name", old: ", name: metal-2}", new: "}", want: []string{"lot.yaml:21:13: nodes[1].server.name: is missing; add it, such as name: metal-1, as the provider's console shows it"}, schema: true},
		{name: "no server", old: "    server: {id: " + id + ", name: metal-2}\n", new: "", want: []string{"lot.yaml:20:5: nodes[1].server: is missing; add it with the server's id and name"}, schema: true},
		{name: "server name of two lines", old: "name: metal-2", new: `name: "a\nb"`, want: []string{"lot.yaml:21:62: nodes[1].server.name: must be the server's name in the provider's console, on one line of up to 255 bytes"}},
		{name: "node name", old: "name: worker-1", new: "name: Worker_1", want: []string{`lot.yaml:20:11: nodes[1].name: must be lower-case letters, digits and inner hyphens, not "Worker_1"`}, schema: true},
		{name: "node name with domain", old: "name: worker-1", new: "name: worker-1.example.org", want: []string{"lot.yaml:20:11: nodes[1].name: must be a name without a domain; leave out the dot and what follows"}, schema: true},
		{name: "server name twice", old: "name: metal-2", new: "name: Metal-1", want: []string{"lot.yaml:21:62: nodes[1].server.name: is that of node \"cp-1\" (line 15) as well as of node \"worker-1\" (line 20); give each node a server of its own, and servers that have one name other names at the provider"}},
		{name: "server named by the ID of another node's", old: "name: metal-2", new: "name: 11111111-2222-4333-8444-55555555550a", want: []string{"lot.yaml:21:62: nodes[1].server.name: is that of node \"cp-1\" (line 15) as well as of node \"worker-1\" (line 20); give each node a server of its own, and servers that have one name other names at the provider"}},
		{name: "server twice as a whole", old: id + ", name: metal-2", new: "11111111-2222-4333-8444-55555555550A, name: metal-1", want: []string{"lot.yaml:21:18: nodes[1].server.id: is that of node \"cp-1\" (line 15) as well as of node \"worker-1\" (line 20); give each node a server of its own"}},
		{name: "node name twice", old: "name: worker-1", new: "name: cp-1", want: []string{"lot.yaml:20:11: nodes[1].name: is the name of node \"cp-1\" (line 15) as well; every node has its own"}},
		{name: "no config file", old: "config: cp.yaml", new: "config: configs/cp.yaml", want: []string{`lot.yaml:17:13: nodes[0].config: names "configs/cp.yaml": the file does not exist; check the path`}},
		{name: "home folder", old: "config: cp.yaml", new: "config: ~/cp.yaml", want: []string{`lot.yaml:17:13: nodes[0].config: names "~/cp.yaml", and ~ is not expanded here; write the whole path, or one relative to the lot file`}},
		{name: "config is a folder", old: "config: cp.yaml", new: "config: .", want: []string{`lot.yaml:17:13: nodes[0].config: names ".": is not a regular file; name a file`}},
		{name: "shared default is reported once", old: "all.yaml", new: "none.yaml", want: []string{`lot.yaml:12:13: defaults.patches[0]: names "none.yaml": the file does not exist; check the path`}},
		{name: "no config", old: "  config: worker.yaml\n", new: "", want: []string{"lot.yaml:19:5: nodes[1].config: is missing; add the path of the machine config here or in defaults"}},
		{name: "no disk rule", old: "  systemDisk: {smallest: true}\n", new: "", want: []string{"lot.yaml:14:5: nodes[0].systemDisk: is missing; say here or in defaults which disk is erased for Talos, such as systemDisk: {smallest: true}"}},
		{name: "no talosconfig", old: "talosconfig: talosconfig", new: "context: admin", want: []string{"lot.yaml:9:3: cluster.talosconfig: is missing; add it, such as talosconfig: ./talosconfig"}, schema: true},
		{name: "size without unit", old: "400GB", new: "'400'", want: []string{`lot.yaml:22:27: nodes[1].systemDisk.minSize: has no unit: write 400GB or 400GiB, not "400"`}, schema: true},
		{name: "size is a number", old: "400GB", new: "400", want: []string{`lot.yaml:22:27: nodes[1].systemDisk.minSize: has no unit: write 400GB or 400GiB, not "400"`}, schema: true},
		{name: "size", old: "400GB", new: "big", want: []string{`lot.yaml:22:27: nodes[1].systemDisk.minSize: must be a size such as 400GB or 1TiB, not "big"`}, schema: true},
		{name: "size unit", old: "400GB", new: "400gb", want: []string{`lot.yaml:22:27: nodes[1].systemDisk.minSize: needs one of the units MB, GB, TB, PB, MiB, GiB, TiB, PiB, such as 400GB, and is "400gb"`}, schema: true},
		{name: "size zero", old: "400GB", new: "0GB", want: []string{`lot.yaml:22:27: nodes[1].systemDisk.minSize: must be more than nothing and less than 4000PB, not "0GB"`}},
		{name: "size huge", old: "400GB", new: "999999999999999PB", want: []string{`lot.yaml:22:27: nodes[1].systemDisk.minSize: must be more than nothing and less than 4000PB, not "999999999999999PB"`}},
		{name: "sizes swapped", old: "400GB", new: "4TB", want: []string{"lot.yaml:22:27: nodes[1].systemDisk.minSize: is larger than maxSize, so no disk fits; swap them"}},
		{name: "two rules", old: disk, new: "systemDisk: {serial: S1, wwn: '0x5000'}", want: []string{"lot.yaml:22:17: nodes[1].systemDisk: has the rules serial and wwn; keep one of them"}, schema: true},
		{name: "smallest and serial", old: disk, new: "systemDisk: {serial: S1, smallest: true}", want: []string{"lot.yaml:22:17: nodes[1].systemDisk: has the rules serial and smallest; keep one of them"}, schema: true},
		{name: "serial and size", old: disk, new: "systemDisk: {serial: S1, minSize: 1GB}", want: []string{"lot.yaml:22:17: nodes[1].systemDisk: has serial, which names one disk, and a size beside it; remove the size"}, schema: true},
		{name: "smallest false", old: disk, new: "systemDisk: {smallest: false}", want: []string{"lot.yaml:22:28: nodes[1].systemDisk.smallest: is false, which picks no disk; remove the line or make it true"}, schema: true},
		{name: "no rule", old: disk, new: "systemDisk: {}", want: []string{"lot.yaml:22:17: nodes[1].systemDisk: has no rule; give one of serial, wwn, byId, smallest, minSize, maxSize"}, schema: true},
		{name: "WWN as a number", old: disk, new: "systemDisk: {wwn: 0x5000c500}", want: []string{`lot.yaml:22:23: nodes[1].systemDisk.wwn: must be text, and YAML reads "0x5000c500" as something else; put it in quotes`}, schema: true},
		{name: "kernel name", old: disk, new: "systemDisk: {byId: /dev/sda}", want: []string{`lot.yaml:22:24: nodes[1].systemDisk.byId: must be below /dev/disk/by-id, and "/dev/sda" may name another disk at the next boot; use serial instead`}},
		{name: "partition", old: disk, new: "systemDisk: {byId: /dev/disk/by-id/ata-X-part1}", want: []string{"lot.yaml:22:24: nodes[1].systemDisk.byId: names a partition; name the whole disk, without -partN"}},
		{name: "by-id path", old: disk, new: "systemDisk: {byId: ../sda}", want: []string{`lot.yaml:22:24: nodes[1].systemDisk.byId: must be a name or path below /dev/disk/by-id, not "../sda"`}},
		{name: "serial", old: disk, new: `systemDisk: {serial: "S1\t"}`, want: []string{"lot.yaml:22:26: nodes[1].systemDisk.serial: must be up to 128 printable letters as `lsblk -o NAME,SERIAL,WWN` shows them, not \"S1\\t\""}},
		{name: "serial in defaults", text: strings.Replace(strings.Replace(good, "{smallest: true}", "{serial: S1}", 1), "    "+disk+"\n", "", 1), want: []string{"lot.yaml:13:15: defaults.systemDisk: names one single disk, and 2 nodes would share it; give each node a systemDisk of its own"}},
		{name: "serial twice", text: strings.Replace(strings.Replace(good, disk, "systemDisk: {serial: S1}", 1), "config: cp.yaml", "systemDisk: {serial: S1}", 1), want: []string{"lot.yaml:22:26: nodes[1].systemDisk.serial: is the serial number of node \"cp-1\" (line 15) as well; every node has its own"}},
		{name: "verify", old: "image:\n", new: "image:\n  verify: none\n", want: []string{`lot.yaml:6:11: image.verify: must be one of full, data, not "none"`}, schema: true},
		{name: "secondary disks", old: "secondaryDisks: keep", new: "secondaryDisks: kept", want: []string{`lot.yaml:23:21: nodes[1].secondaryDisks: must be one of blank, keep, not "kept"`}, schema: true},
		{name: "delivery", old: "secondaryDisks: keep", new: "delivery: usb", want: []string{`lot.yaml:23:15: nodes[1].delivery: must be one of maintenance, state, not "usb"`}, schema: true},
		{name: "vlan", old: "secondaryDisks: keep", new: "vlan: '12'", want: []string{`lot.yaml:23:11: nodes[1].vlan: must be auto, not "12"; a number belongs into the config`}, schema: true},
		{name: "value name", old: "secondaryDisks: keep", new: "values: [{name: Rack, value: x}]", want: []string{`lot.yaml:23:21: nodes[1].values[0].name: must be lower-case letters, digits and hyphens, at most 40, not "Rack"`}, schema: true},
		{name: "value taken", old: "secondaryDisks: keep", new: "values: [{name: name, value: x}]", want: []string{"lot.yaml:23:21: nodes[1].values[0].name: is a value that every node has already; choose another name"}},
		{name: "value twice", old: "secondaryDisks: keep", new: "values: [{name: a, value: x}, {name: a, value: y}]", want: []string{"lot.yaml:23:42: nodes[1].values[1].name: is there twice; keep one"}},
		{name: "value without value", old: "secondaryDisks: keep", new: "values: [{name: a}]", want: []string{`lot.yaml:23:14: nodes[1].values[0].value: is missing; add it, such as value: "12"`}, schema: true},
		{name: "default value twice", old: "defaults:\n", new: "defaults:\n  values: [{name: a, value: x}, {name: a, value: y}]\n", want: []string{"lot.yaml:11:40: defaults.values[1].name: is there twice; keep one"}},
		{name: "two bootstraps", text: strings.Replace(strings.Replace(good, "config: cp.yaml", "config: cp.yaml\n    bootstrap: true", 1), "secondaryDisks: keep", "bootstrap: true", 1), want: []string{"lot.yaml:24:16: nodes[1].bootstrap: is true for nodes[0] in line 18 as well, and two bootstraps make two clusters; keep one, the other control planes join it"}},
		{name: "bootstrap in defaults", old: "defaults:\n", new: "defaults:\n  bootstrap: true\n", want: []string{"lot.yaml:11:3: defaults.bootstrap: is not a key here; the keys are boot, config, delivery, patches, ready, reprovision, rescue, secondaryDisks, systemDisk, talosPort, timeouts, values, vlan"}, schema: true},
		{name: "ready word", old: "secondaryDisks: keep", new: "ready: {accept: [no-cmi]}", want: []string{`lot.yaml:23:22: nodes[1].ready.accept[0]: must be one of no-cni, uninitialized, not "no-cmi"; did you mean no-cni?`}, schema: true},
		{name: "hold", old: "secondaryDisks: keep", new: "ready: {hold: 31m}", want: []string{"lot.yaml:23:19: nodes[1].ready.hold: is 31m0s, and timeouts.ready gives up after 30m0s; make it shorter"}},
		{name: "port", old: "{fresh: true}", new: "{port: 0}", want: []string{"lot.yaml:25:20: nodes[1].rescue.port: must be from 1 to 65535, not 0"}, schema: true},
		{name: "Talos port", old: "rescue: {fresh: true}", new: "talosPort: 65536", want: []string{"lot.yaml:25:16: nodes[1].talosPort: must be from 1 to 65535, not 65536"}, schema: true},
		{name: "timeout", old: "45m", new: "45 minutes", want: []string{`lot.yaml:19:23: nodes[0].timeouts.write: must be written 45m, not "45 minutes"`}, schema: true},
		{name: "timeout in words", old: "45m", new: "soon", want: []string{`lot.yaml:19:23: nodes[0].timeouts.write: must be a time such as 90s, 20m or 1h30m, not "soon"`}, schema: true},
		{name: "timeout in days", old: "45m", new: "1d", want: []string{`lot.yaml:19:23: nodes[0].timeouts.write: must be a time such as 90s, 20m or 1h30m, not "1d"`}, schema: true},
		{name: "timeout without unit", old: "45m", new: "5", want: []string{`lot.yaml:19:23: nodes[0].timeouts.write: has no unit: write 5m for minutes, 5s for seconds or 5h for hours, not "5"`}, schema: true},
		{name: "hold without unit", old: "secondaryDisks: keep", new: "ready: {hold: 30}", want: []string{`lot.yaml:23:19: nodes[1].ready.hold: has no unit: write 30m for minutes, 30s for seconds or 30h for hours, not "30"`}, schema: true},
		{name: "timeout negative", old: "45m", new: "-45m", want: []string{`lot.yaml:19:23: nodes[0].timeouts.write: must be from 1s to 24h, not "-45m"`}, schema: true},
		{name: "timeout short", old: "45m", new: "5ms", want: []string{`lot.yaml:19:23: nodes[0].timeouts.write: must be from 1s to 24h, not "5ms"`}},
		{name: "parallel", old: "nodes:\n", new: "rollout: {parallel: 0}\nnodes:\n", want: []string{"lot.yaml:14:21: rollout.parallel: must be from 1 to 1000, not 0"}, schema: true},
		{name: "canary", old: "nodes:\n", new: "rollout: {canary: 0}\nnodes:\n", want: []string{"lot.yaml:14:19: rollout.canary: must be from 1 to 1000, not 0"}, schema: true},
		{name: "max stuck", old: "nodes:\n", new: "rollout: {maxStuck: -1}\nnodes:\n", want: []string{"lot.yaml:14:21: rollout.maxStuck: must be from 0 to 1000, not -1"}, schema: true},
	}
}

// nodesOf is the end of a lot file from its nodes on.
func nodesOf(text string) string { return text[strings.Index(text, "nodes:"):] }

// kubernetesMistakes are those of what is asked of Kubernetes.
func kubernetesMistakes() []mistake {
	const here = "secondaryDisks: keep"
	ready := func(text string) string { // the nodes' lines stay one further down
		with := strings.Replace(good, "talosconfig: talosconfig", "talosconfig: talosconfig\n  kubeconfig: kubeconfig", 1)
		return strings.Replace(with, here, "ready: {"+text+"}", 1)
	}
	return []mistake{
		{name: "labels without a kubeconfig", old: here, new: "ready: {labels: [{name: rack}]}", want: []string{"lot.yaml:23:13: nodes[1].ready.labels: is asked of Kubernetes; add cluster.kubeconfig, or remove it"}},
		{name: "provider ID without a kubeconfig", old: here, new: "ready: {providerID: any}", want: []string{"lot.yaml:23:13: nodes[1].ready.providerID: is asked of Kubernetes; add cluster.kubeconfig, or remove it"}},
		{name: "no kubeconfig there", old: "cluster:\n", new: "cluster:\n  kubeconfig: none\n", want: []string{`lot.yaml:9:15: cluster.kubeconfig: names "none": the file does not exist; check the path`}},
		{name: "no label", text: ready("labels: [{name: 'a rack'}]"), want: []string{`lot.yaml:24:29: nodes[1].ready.labels[0].name: must be the key of a Kubernetes label, such as node.kubernetes.io/instance-type, not "a rack"`}},
		{name: "label twice", text: ready("labels: [{name: a}, {name: a}]"), want: []string{"lot.yaml:24:40: nodes[1].ready.labels[1].name: is there twice; keep one"}},
		{name: "label without a name", text: ready("labels: [{value: x}]"), want: []string{"lot.yaml:24:22: nodes[1].ready.labels[0].name: is missing; add it, such as name: node.kubernetes.io/instance-type"}, schema: true},
		{name: "label with an unknown value", text: ready("labels: [{name: a, value: '${ironlot.rack}'}]"), want: []string{"lot.yaml:24:39: nodes[1].ready.labels[0].value: asks for a value that is not known here: \"${ironlot.rack}\"; use name, lot, zone, server.id, server.name, or vlan with `vlan: auto`"}},
		{name: "provider ID with an unknown value", text: ready("providerID: 'x://${ironlot.id}'"), want: []string{"lot.yaml:24:25: nodes[1].ready.providerID: asks for a value that is not known here: \"x://${ironlot.id}\"; use name, lot, zone, server.id, server.name, or vlan with `vlan: auto`"}},
	}
}
