package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ironlot/ironlot/internal/cmdline"
	"github.com/ironlot/ironlot/internal/lot"
)

// The names of positional arguments, in brackets where they may be left out.
const (
	argLot       = "LOT"
	argNode      = "NODE"
	argFile      = "LOT.YAML"
	argMaybeLot  = "[LOT]"
	argMaybeNode = "[NODE]"
)

// takes takes the positional arguments of these names, at least so many. A file
// where none belongs is answered with what was meant; what cannot be the name of
// a lot or a node would be no header of a request to Temporal either.
func takes(least int, names ...string) cobra.PositionalArgs {
	count := cmdline.Words(least, names...)
	return func(cmd *cobra.Command, args []string) error {
		for i, word := range args {
			if i < len(names) && names[i] == argFile {
				continue
			}
			if err := fileMeant(cmd, args, i, names[:least]); err != nil {
				return err
			}
			if word == "" || len(word) > maxName || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r > '~' }) {
				return fmt.Errorf("%.80q is no name of a lot or a node", word)
			}
		}
		err := count(cmd, args)
		if err != nil && len(args) > len(names) && cmd.Flags().Lookup("batch") != nil {
			return fmt.Errorf("%w: the lot file is named by --batch", err)
		}
		return err
	}
}

// maxName is longer than any name, in bytes.
const maxName = 255

// fileMeant says how a file is given that stands where none belongs.
func fileMeant(cmd *cobra.Command, args []string, at int, needed []string) error {
	file, path := args[at], cmd.CommandPath()
	rest := slices.Delete(slices.Clone(args), at, at+1)
	switch extension := filepath.Ext(file); {
	case extension == ".json" && cmd.Flags().Lookup("from") != nil && cmd.Name() == "postmortem":
		return fmt.Errorf("%.80q is a file, and an exported history is named by a flag: `%s --from %s`", file, path, file)
	case extension != ".yaml" && extension != ".yml":
		return nil
	case cmd.Flags().Lookup("batch") != nil:
		if len(rest) == 0 && len(needed) > 0 {
			rest = []string{lotOf(file)}
		}
		words := append(append([]string{path}, rest...), "--batch", file)
		return fmt.Errorf("%.80q is a lot file, and it is named by a flag: `%s`", file, strings.Join(words, " "))
	case cmd.HasSubCommands():
		return fmt.Errorf("%[1]q is a lot file: check it with `starter validate %[1]s`, install its servers with `starter provision --batch %[1]s`", file)
	case at == 0:
		return fmt.Errorf("%.80q is a file, and a lot goes by its name: `%s`", file, strings.Join(append([]string{path, lotOf(file)}, rest...), " "))
	default:
		return nil
	}
}

// lotOf is the name of the lot that a file tells, as far as it can be read.
func lotOf(file string) string {
	l, err := lot.Load(file)
	if err != nil {
		return argLot
	}
	return l.Name
}

// command takes none but a command in its place.
func command(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		if err := fileMeant(cmd, args, 0, nil); err != nil {
			return err
		}
	}
	return cmdline.Commands(cmd, args)
}

// flagMistake says what is wrong with a flag.
func flagMistake(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedName() == "batch" && cmd.Name() == "validate" {
		return errors.New("the file to validate is named without a flag: `starter validate LOT.YAML`")
	}
	return cmdline.Flag(cmd, err)
}

// helpTopic takes the words of a command that is there.
func helpTopic(cmd *cobra.Command, args []string) error {
	topic, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) == 0 {
		return nil
	}
	if topic == nil {
		topic = cmd.Root()
	}
	return cmdline.Commands(topic, rest)
}
