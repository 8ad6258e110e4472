// Package cmdline says in Ironlot's words what is wrong with a command line,
// where cobra would say it in its own, and guesses what was meant.
package cmdline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/near"
)

// See adds to a mistake of the command line, if there is one, where the right
// one is told.
func See(cmd *cobra.Command, err error) error {
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return err
	}
	return fault.Operator(fmt.Sprintf("`%s --help` shows how it is used", cmd.CommandPath()), "%w", err)
}

// Words takes the positional arguments of these names, of which those after the
// first few may be left out.
func Words(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		path, all := cmd.CommandPath(), strings.Join(names, " ")
		switch {
		case len(args) < least:
			return fmt.Errorf("`%s` takes %s, and %s is missing", path, all, strings.Join(names[len(args):least], " "))
		case len(args) <= len(names):
			return nil
		case len(names) == 0:
			return fmt.Errorf("`%s` takes no arguments, and %.80q is one", path, args[0])
		default:
			return fmt.Errorf("`%s` takes %s, and %.80q is one too many", path, all, args[len(names)])
		}
	}
}

// Commands takes no argument, since a command is to stand there.
func Commands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	text := fmt.Sprintf("`%s` has no command %.80q", cmd.CommandPath(), args[0])
	if meant := near.Word(args[0], names); meant != "" {
		text += fmt.Sprintf("; did you mean `%s %s`", cmd.CommandPath(), meant)
	}
	return errors.New(text)
}

// Flag says what is wrong with a flag.
func Flag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var wrong *pflag.InvalidValueError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &bare):
		return fmt.Errorf("--%s needs a value after it", bare.GetFlag().Name)
	case errors.As(err, &wrong):
		return fmt.Errorf("--%s takes %s, not %.80q", wrong.GetFlag().Name, kind(wrong), wrong.GetValue())
	case errors.As(err, &syntax):
		return fmt.Errorf("%.80q is no flag", syntax.GetSpecifiedFlag())
	default:
		return err
	}
}

func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	if unknown.GetSpecifiedShortnames() != "" {
		return fmt.Errorf("`%s` has no flag -%s", cmd.CommandPath(), unknown.GetSpecifiedName())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	text := fmt.Sprintf("`%s` has no flag --%.80s", cmd.CommandPath(), unknown.GetSpecifiedName())
	if meant := near.Word(unknown.GetSpecifiedName(), names); meant != "" {
		text += "; did you mean --" + meant
	}
	return errors.New(text)
}

// kind is what a flag takes, in words.
func kind(wrong *pflag.InvalidValueError) string {
	kinds := map[string]string{
		"int": "a whole number", "int64": "a whole number", "uint64": "a whole number, not below 0",
		"float64": "a number", "bool": "true or false", "duration": "a time such as 30s or 5m",
	}
	name, known := kinds[wrong.GetFlag().Value.Type()]
	switch {
	case !known:
		return "another kind of value"
	case errors.Is(wrong, strconv.ErrRange):
		return name + " that is smaller"
	default:
		return name
	}
}
