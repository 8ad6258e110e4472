// Package seal keeps secrets out of clear text while they travel: a value is
// compressed with zstd and encrypted with age (https://age-encryption.org) to
// the workers' recipients. No error of this package holds plaintext or key
// material.
package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/klauspost/compress/zstd"

	"github.com/ironlot/ironlot/internal/fault"
)

// maxPlaintext bounds what Open unpacks, in bytes: a machine config with every
// certificate in it is a hundredth of it.
const maxPlaintext = 16 << 20

// Seal encrypts plaintext to every recipient and gives the ASCII-armored age
// file. Any one of the recipients' identities opens it. The error is
// NeedsOperator when there is no recipient or the plaintext is too large.
func Seal(plaintext []byte, recipients ...age.Recipient) (string, error) {
	if len(recipients) == 0 {
		return "", fault.Operator("name at least one age recipient of the workers",
			"nothing can be sealed without a recipient")
	}
	if len(plaintext) > maxPlaintext {
		return "", fault.Operator("make the config smaller",
			"%d bytes are more than the %d that can be sealed", len(plaintext), maxPlaintext)
	}
	packed, err := compress(plaintext)
	if err != nil {
		return "", fmt.Errorf("compressing before sealing failed: %w", err)
	}
	var out strings.Builder
	armored := armor.NewWriter(&out)
	w, err := age.Encrypt(armored, recipients...)
	if err != nil {
		return "", fault.Operator("use recipients of one kind (age1… or age1pq1…)", "sealing failed: %w", err)
	}
	_, err = w.Write(packed)
	if err := errors.Join(err, w.Close(), armored.Close()); err != nil {
		return "", fmt.Errorf("sealing failed: %w", err)
	}
	return out.String(), nil
}

// Open decrypts what Seal made. Errors are NeedsOperator: the identities are
// not those that it was sealed to, or the sealed value was damaged.
func Open(sealed string, identities ...age.Identity) ([]byte, error) {
	if len(identities) == 0 {
		return nil, fault.Operator("give the worker its age identity file",
			"the sealed value cannot be opened without an identity")
	}
	r, err := age.Decrypt(armor.NewReader(strings.NewReader(sealed)), identities...)
	if noMatch := new(age.NoIdentityMatchError); errors.As(err, &noMatch) {
		return nil, fault.Operator(
			"start the worker with the identity whose recipient the lot was sealed to, or provision again with this worker's recipient",
			"the value is sealed to other recipients: none of this worker's own (%s) opens it", publicKeys(identities))
	}
	if err != nil {
		return nil, damaged(err)
	}
	packed, err := io.ReadAll(io.LimitReader(r, 2*maxPlaintext))
	if err != nil {
		return nil, damaged(err)
	}
	plaintext, err := decompress(packed)
	if err != nil {
		return nil, damaged(err)
	}
	return plaintext, nil
}

func damaged(err error) error {
	return fault.Operator("seal it again", "the sealed value is damaged or was not made by this program: %w", err)
}

func compress(plaintext []byte) ([]byte, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return enc.EncodeAll(plaintext, nil), enc.Close()
}

func decompress(packed []byte) ([]byte, error) {
	dec, err := zstd.NewReader(bytes.NewReader(packed),
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*maxPlaintext))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	plaintext, err := io.ReadAll(io.LimitReader(dec, maxPlaintext+1))
	if err != nil {
		return nil, err
	}
	if len(plaintext) > maxPlaintext {
		return nil, fmt.Errorf("it unpacks to more than %d bytes", maxPlaintext)
	}
	return plaintext, nil
}

// publicKeys names identities by their recipients, which are not secret.
func publicKeys(identities []age.Identity) string {
	var keys []string
	for _, identity := range identities {
		if recipient := recipientOf(identity); recipient != nil {
			keys = append(keys, fmt.Sprint(recipient))
		}
	}
	return strings.Join(keys, ", ")
}
