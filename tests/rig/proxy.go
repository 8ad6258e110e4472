package rig

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/ironlot/ironlot/internal/listen"
	"github.com/ironlot/ironlot/internal/run"
)

// maxMessage bounds a message of Temporal's API, bytes.
const maxMessage = 64 << 20

// Task is an attempt of an activity, as Temporal hands it to a worker.
type Task struct {
	Workflow string // its ID
	Activity string
	Attempt  int32
}

// Script decides what the proxy does with what passes. It may block until
// ctx, the worker's call, ends.
type Script interface {
	// Deliver reports whether a worker gets the task; one that it does not
	// get is lost, as with a worker that dies at once.
	Deliver(t Task) bool
	// Answer is called before Temporal hears how an attempt has ended.
	Answer(ctx context.Context, t Task)
	// Intent is called when Temporal keeps a worker's intent to send a
	// request, and the worker does not know that yet.
	Intent(ctx context.Context, t Task)
}

// Proxy stands between workers and Temporal's server.
type Proxy struct {
	script Script
	server *grpc.Server
	conn   *grpc.ClientConn
	addr   string

	mu    sync.Mutex
	tasks map[string]Task // by token
	now   map[string]Task // by workflow: the attempt that was given out last
}

// NewProxy starts a proxy to a server. It follows the server over restarts.
func NewProxy(target string, script Script) (*Proxy, error) {
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second}, MinConnectTimeout: time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return nil, err
	}
	listener, err := listen.TCP(context.Background(), "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{script: script, conn: conn, addr: listener.Addr().String(), tasks: map[string]Task{}, now: map[string]Task{}}
	p.server = grpc.NewServer(grpc.UnaryInterceptor(p.intercept), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	workflows, err := proxy.NewWorkflowServiceProxyServer(proxy.WorkflowServiceProxyOptions{Client: workflowservice.NewWorkflowServiceClient(conn)})
	if err != nil {
		return nil, err
	}
	workflowservice.RegisterWorkflowServiceServer(p.server, workflows)
	operatorservice.RegisterOperatorServiceServer(p.server, &operators{client: operatorservice.NewOperatorServiceClient(conn)})
	go func() { _ = p.server.Serve(listener) }() // ends with Close
	return p, nil
}

// Close ends the proxy and every call through it.
func (p *Proxy) Close() {
	p.server.Stop()
	_ = p.conn.Close()
}

// Now is the attempt that a workflow's worker was given last.
func (p *Proxy) Now(workflow string) Task {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now[workflow]
}

func (p *Proxy) intercept(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	switch r := req.(type) {
	case *workflowservice.PollActivityTaskQueueRequest:
		return p.poll(ctx, r, handler)
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		for _, c := range r.GetCommands() { // every task comes through a poll
			if a := c.GetScheduleActivityTaskCommandAttributes(); a != nil {
				a.RequestEagerExecution = false
			}
		}
	case *workflowservice.RespondActivityTaskCompletedRequest:
		p.script.Answer(ctx, p.task(r.GetTaskToken()))
	case *workflowservice.RespondActivityTaskFailedRequest:
		p.script.Answer(ctx, p.task(r.GetTaskToken()))
	case *workflowservice.RecordActivityTaskHeartbeatRequest:
		answer, err := handler(ctx, req)
		if err == nil && intends(r) {
			p.script.Intent(ctx, p.task(r.GetTaskToken()))
		}
		return answer, err
	}
	if ctx.Err() != nil { // the worker died while it was held
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return handler(ctx, req)
}

// poll gives a worker the next task that the script lets through.
func (p *Proxy) poll(ctx context.Context, r *workflowservice.PollActivityTaskQueueRequest, handler grpc.UnaryHandler) (any, error) {
	for {
		answer, err := handler(ctx, r)
		polled, ok := answer.(*workflowservice.PollActivityTaskQueueResponse)
		if err != nil || !ok || len(polled.GetTaskToken()) == 0 {
			return answer, err
		}
		t := Task{Workflow: polled.GetWorkflowExecution().GetWorkflowId(), Activity: polled.GetActivityType().GetName(), Attempt: polled.GetAttempt()}
		p.mu.Lock()
		p.tasks[string(polled.GetTaskToken())], p.now[t.Workflow] = t, t
		p.mu.Unlock()
		if p.script.Deliver(t) {
			return answer, nil
		}
	}
}

func (p *Proxy) task(token []byte) Task {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tasks[string(token)]
}

// intends reports whether a heartbeat records an intent that is not sent yet.
func intends(r *workflowservice.RecordActivityTaskHeartbeatRequest) bool {
	for _, payload := range r.GetDetails().GetPayloads() {
		var p run.Progress
		if json.Unmarshal(payload.GetData(), &p) == nil && p.Intent != nil && !p.Intent.Sent {
			return true
		}
	}
	return false
}

// operators forwards what a worker asks of the operator service at its start.
type operators struct {
	operatorservice.UnimplementedOperatorServiceServer

	client operatorservice.OperatorServiceClient
}

func (o *operators) ListSearchAttributes(ctx context.Context, r *operatorservice.ListSearchAttributesRequest) (*operatorservice.ListSearchAttributesResponse, error) {
	return o.client.ListSearchAttributes(ctx, r)
}

func (o *operators) AddSearchAttributes(ctx context.Context, r *operatorservice.AddSearchAttributesRequest) (*operatorservice.AddSearchAttributesResponse, error) {
	return o.client.AddSearchAttributes(ctx, r)
}
