package scwapi

import (
	"net/http"
	"strconv"
	"time"
)

// problem is an answer that is an error.
type problem struct {
	code       int
	body       map[string]any // nil: a gateway's HTML page
	retryAfter time.Duration
}

// write sends the problem.
func (p *problem) write(w http.ResponseWriter) {
	if p.retryAfter > 0 {
		seconds := int((p.retryAfter + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	if p.body != nil {
		writeJSON(w, p.code, p.body)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(p.code)
	_, _ = w.Write([]byte("<html><body><h1>" + http.StatusText(p.code) + "</h1></body></html>"))
}

// message is an error with nothing but a text, as recorded.
func message(code int, text string) *problem {
	return &problem{code: code, body: map[string]any{"message": text}}
}

// notFound is what the API says of a server that does not exist, as recorded.
func notFound() *problem { return message(http.StatusNotFound, "Not Found") }

// notDelivered refuses an action on a server that is not there yet, as
// recorded.
func notDelivered() *problem { return message(http.StatusBadRequest, "Server is not delivered") }

// noCloudInit refuses user data, as recorded: 503, although it never passes.
func noCloudInit(text string) *problem { return message(http.StatusServiceUnavailable, text) }

// typed is an error of a standard type.
func typed(code int, kind, text string, fields map[string]any) *problem {
	body := map[string]any{"type": kind, "message": text}
	for k, v := range fields {
		body[k] = v
	}
	return &problem{code: code, body: body}
}

// noResource is the standard error for a resource named in a request.
func noResource(kind, id string) *problem {
	return typed(http.StatusNotFound, "not_found", "resource is not found",
		map[string]any{"resource": kind, "resource_id": id})
}

// passing refuses what a server cannot do in its state (assumed).
func passing(id, state string) *problem {
	return typed(http.StatusConflict, "transient_state", "resource is in a transient state",
		map[string]any{"resource": "server", "resource_id": id, "current_state": state})
}

// precondition refuses what needs something else first (assumed).
func precondition(help string) *problem {
	return typed(http.StatusPreconditionFailed, "precondition_failed", "precondition is not respected",
		map[string]any{"precondition": "unknown_precondition", "help_message": help})
}

// invalid refuses an argument.
func invalid(argument, help string) *problem {
	return typed(http.StatusBadRequest, "invalid_arguments", "invalid argument(s)", map[string]any{
		"details": []map[string]any{{"argument_name": argument, "reason": "constraint", "help_message": help}},
	})
}

// unauthenticated refuses an API key.
func unauthenticated(reason string) *problem {
	return typed(http.StatusUnauthorized, "denied_authentication", "authentication is denied",
		map[string]any{"method": "api_key", "reason": reason})
}

// forbidden refuses a read-only key.
func forbidden() *problem {
	return typed(http.StatusForbidden, "permissions_denied", "insufficient permissions", map[string]any{
		"details": []map[string]any{{"resource": "elastic_metal_server", "action": "write"}},
	})
}

// tooMany limits the rate of requests. The SDK has no type for it.
func tooMany(after time.Duration) *problem {
	p := message(http.StatusTooManyRequests, "Too Many Requests")
	p.retryAfter = after
	return p
}

// broken is a failure: of the API itself (500), else of the gateway before it.
func broken(code int) *problem {
	if code == http.StatusInternalServerError {
		return message(code, "internal error")
	}
	return &problem{code: code}
}
