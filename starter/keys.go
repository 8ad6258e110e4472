package main

import (
	"fmt"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/seal"
)

func (a *app) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Show or make the key that machine configs are sealed to",
		Long: `Machine configs travel encrypted (age) from the starter to the workers. The
starter seals to IRONLOT_RECIPIENTS (public keys, separated by commas), else
to the public keys of recipients.txt in the state directory, else to the
state directory's own identity, which ` + "`up`" + ` lets its worker open.

For a worker on another machine: run ` + "`starter keys create`" + ` there, and put
the public key that it prints into recipients.txt here.`,
		Args: command,
		RunE: func(*cobra.Command, []string) error { return a.showKeys() },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "show", Short: "Show the public keys that configs are sealed to", Args: takes(0),
			RunE: func(*cobra.Command, []string) error { return a.showKeys() },
		},
		&cobra.Command{
			Use: "create", Short: "Make the identity of this state directory, if there is none", Args: takes(0),
			RunE: func(*cobra.Command, []string) error { return a.createKey() },
		},
	)
	return cmd
}

func (a *app) showKeys() error {
	h, err := a.home()
	if err != nil {
		return err
	}
	recipients, err := h.Recipients()
	if err != nil {
		return err
	}
	return a.printKeys(recipients, "")
}

func (a *app) createKey() error {
	h, err := a.home()
	if err != nil {
		return err
	}
	identities, err := seal.LoadOrCreateIdentity(h.IdentityFile())
	if err != nil {
		return err
	}
	return a.printKeys(seal.Recipients(identities...), h.IdentityFile())
}

// keyFacts is the answer to programs.
type keyFacts struct {
	Recipients   []string `json:"recipients"`
	IdentityFile string   `json:"identityFile,omitempty"`
}

// printKeys prints public keys, one a line, and where the secret one is.
func (a *app) printKeys(recipients []age.Recipient, file string) error {
	keys := make([]string, len(recipients))
	for i, r := range recipients {
		keys[i] = fmt.Sprint(r)
	}
	if a.structured() {
		return a.encode(keyFacts{keys, file})
	}
	for _, key := range keys {
		if _, err := fmt.Fprintln(a.stdout, key); err != nil {
			return err
		}
	}
	if file != "" {
		a.tell(fmt.Sprintf("the secret key is in %s; it opens every machine config that is sealed to it", file))
	}
	return nil
}
