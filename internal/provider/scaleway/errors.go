package scaleway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/scaleway/scaleway-sdk-go/scw"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/provider"
)

// verdict is what an error of the API means.
type verdict struct {
	class  fault.Class
	why    string
	remedy string
	maybe  bool // the request may have been carried out
}

const (
	remedyKey        = "check the API key: it must exist, be enabled and not be expired"
	remedyPermission = "give the API key's IAM application ElasticMetalFullAccess and SSHKeysReadOnly in the server's project"
	remedyMissing    = "check the server's ID and zone, and that the API key belongs to its organization"
	remedyRequest    = "see the Scaleway console for the server's state and the account's limits"
)

// fail turns an error of the SDK into a fault; op says what was being done,
// such as "reboot server X in zone Y".
func (c *Client) fail(op string, err error) error {
	v := judge(err)
	return &fault.Error{
		Class:   v.class,
		Message: c.redact("cannot " + op + ": " + v.why),
		Remedy:  v.remedy,
		Cause:   c.cause(err, v.maybe),
	}
}

// judge tries what the transport knows, then the SDK's types, then the
// status code.
func judge(err error) verdict {
	if v, ok := judgeTransport(err); ok {
		return v
	}
	if v, ok := judgePassing(err); ok {
		return v
	}
	if v, ok := judgeRefusal(err); ok {
		return v
	}
	if resp, ok := errors.AsType[*scw.ResponseError](err); ok {
		return judgeStatus(resp)
	}
	// An answer came that is not the API's: a proxy's page, half a body.
	return verdict{fault.Transient, "the answer cannot be understood (" + text(err) + ")",
		"check SCW_API_URL and any proxy if it stays like this", true}
}

// judgeTransport knows the errors of a request without an answer.
func judgeTransport(err error) (verdict, bool) {
	maybe := provider.MaybeDone(err)
	if throttled, ok := errors.AsType[*provider.Throttled](err); ok {
		return verdict{fault.Transient, "Scaleway limits the rate of requests, " + throttled.Error(), "", false}, true
	}
	switch _, badCert := errors.AsType[*tls.CertificateVerificationError](err); {
	case badCert:
		return verdict{fault.NeedsOperator, "the API's certificate is not to be trusted (" + text(err) + ")",
			"check SCW_API_URL, the system's clock and any proxy", false}, true
	case errors.Is(err, context.Canceled):
		return verdict{fault.Transient, "the request was canceled", "", maybe}, true
	case errors.Is(err, context.DeadlineExceeded):
		return verdict{fault.Transient, "Scaleway did not answer in time", "", maybe}, true
	}
	if broken, ok := errors.AsType[*url.Error](err); ok {
		return verdict{fault.Transient, "the connection to the API failed (" + broken.Err.Error() + ")", "", maybe}, true
	}
	return verdict{}, false
}

// judgePassing knows the states that pass by themselves.
func judgePassing(err error) (verdict, bool) {
	if e, ok := errors.AsType[*scw.TransientStateError](err); ok {
		return verdict{fault.Transient, fmt.Sprintf("%s is in the passing state %q", resource(e.Resource, e.ResourceID), e.CurrentState), "", false}, true
	}
	if e, ok := errors.AsType[*scw.ResourceLockedError](err); ok {
		return verdict{fault.Transient, resource(e.Resource, e.ResourceID) + " is locked by another operation or by Scaleway",
			"ask Scaleway's support if it stays locked", false}, true
	}
	return verdict{}, false
}

// judgeRefusal knows the SDK's types for what cannot pass by itself.
func judgeRefusal(err error) (verdict, bool) {
	refuse := func(why, remedy string) (verdict, bool) {
		return verdict{fault.NeedsOperator, why, remedy, false}, true
	}
	if _, ok := errors.AsType[*scw.DeniedAuthenticationError](err); ok {
		return refuse("Scaleway does not accept the API key ("+text(err)+")", remedyKey)
	}
	if _, ok := errors.AsType[*scw.PermissionsDeniedError](err); ok {
		return refuse("the API key may not do this ("+text(err)+")", remedyPermission)
	}
	if e, ok := errors.AsType[*scw.ResourceNotFoundError](err); ok {
		return refuse("Scaleway knows no "+resource(e.Resource, e.ResourceID), remedyMissing)
	}
	if _, ok := errors.AsType[*scw.QuotasExceededError](err); ok {
		return refuse("a quota of the account is used up ("+text(err)+")", "ask Scaleway's support to raise it")
	}
	if e, ok := errors.AsType[*scw.OutOfStockError](err); ok {
		return refuse("Scaleway has no "+word(e.Resource)+" left in stock", "choose another offer or zone")
	}
	if e, ok := errors.AsType[*scw.ResourceExpiredError](err); ok {
		return refuse(resource(e.Resource, e.ResourceID)+" has expired", "check the server's subscription in the Scaleway console")
	}
	if _, ok := errors.AsType[*scw.PreconditionFailedError](err); ok {
		return refuse("Scaleway wants something else first ("+text(err)+")", remedyRequest)
	}
	if _, ok := errors.AsType[*scw.InvalidArgumentsError](err); ok {
		return refuse("Scaleway refuses the request ("+text(err)+")", remedyRequest)
	}
	return verdict{}, false
}

// judgeStatus is for answers without a type: the status code is all there is.
// A 503 may also be a refusal (cloud-init on some offers), but not of any
// request made here, so that it is worth another try.
func judgeStatus(e *scw.ResponseError) verdict {
	said := e.Status
	if e.Message != "" && e.Message != e.Status {
		said += ", " + strings.Join(strings.Fields(e.Message), " ")
	}
	switch code := e.StatusCode; {
	case code == http.StatusUnauthorized:
		return verdict{fault.NeedsOperator, "Scaleway does not accept the API key (" + said + ")", remedyKey, false}
	case code == http.StatusForbidden:
		return verdict{fault.NeedsOperator, "the API key may not do this (" + said + ")", remedyPermission, false}
	case code == http.StatusNotFound || code == http.StatusGone:
		return verdict{fault.NeedsOperator, "Scaleway does not know it (" + said + ")", remedyMissing, false}
	case code == http.StatusRequestTimeout || code == http.StatusConflict || code == http.StatusLocked || code == http.StatusTooEarly:
		return verdict{fault.Transient, "Scaleway cannot do it now (" + said + ")", "", false}
	case code >= http.StatusInternalServerError:
		return verdict{fault.Transient, "Scaleway has a problem (" + said + ")", "see https://status.scaleway.com if it lasts", true}
	case code < http.StatusBadRequest:
		return verdict{fault.NeedsOperator, "the API answers with a redirection (" + said + ")", "check SCW_API_URL", false}
	default:
		return verdict{fault.NeedsOperator, "Scaleway refuses the request (" + said + ")", remedyRequest, false}
	}
}

// cause keeps the error for errors.Is and errors.As, without any secret and
// with the mark of a request that may have been carried out.
func (c *Client) cause(err error, maybe bool) error {
	if clean := c.redact(err.Error()); clean != err.Error() {
		err = errors.New(clean)
	}
	if maybe && !provider.MaybeDone(err) {
		return &provider.Unanswered{Cause: err}
	}
	return err
}

// redact takes the secret key out of a text, should something have echoed it.
func (c *Client) redact(s string) string { return strings.ReplaceAll(s, c.secret, "[secret key]") }

// text is an SDK error's text on one line without the SDK's name.
func text(err error) string {
	s := strings.ReplaceAll(err.Error(), "scaleway-sdk-go: ", "")
	return strings.Join(strings.Fields(s), " ")
}

// resource names what an error is about.
func resource(kind, id string) string { return strings.TrimSpace(word(kind) + " " + id) }

// word makes a resource's kind readable.
func word(kind string) string {
	if kind == "" {
		return "such resource"
	}
	return strings.ReplaceAll(kind, "_", " ")
}
