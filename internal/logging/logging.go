// Package logging makes the zap logger of the worker and lends it to the
// Temporal SDK.
package logging

import (
	"fmt"
	"io"

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/ironlot/ironlot/internal/fault"
)

// New makes a logger. The format is "json" or "console", the level one of
// zap's names. Errors are NeedsOperator.
func New(w io.Writer, format, level string) (*zap.Logger, error) {
	var min zapcore.Level
	if err := min.UnmarshalText([]byte(level)); err != nil {
		return nil, fault.Operator("use debug, info, warn or error", "the log level %q is not known", level)
	}
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.ISO8601TimeEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	var encoder zapcore.Encoder
	switch format {
	case "json":
		encoder = zapcore.NewJSONEncoder(config)
	case "console":
		config.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(config)
	default:
		return nil, fault.Operator("use json or console", "the log format %q is not known", format)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), min)), nil
}

// Temporal lends a zap logger to the Temporal SDK.
func Temporal(l *zap.Logger) log.Logger {
	return &temporalLogger{l.WithOptions(zap.AddCallerSkip(1))}
}

type temporalLogger struct{ zap *zap.Logger }

func (l *temporalLogger) Debug(msg string, keyvals ...any) { l.zap.Debug(msg, fields(keyvals)...) }
func (l *temporalLogger) Info(msg string, keyvals ...any)  { l.zap.Info(msg, fields(keyvals)...) }
func (l *temporalLogger) Warn(msg string, keyvals ...any)  { l.zap.Warn(msg, fields(keyvals)...) }
func (l *temporalLogger) Error(msg string, keyvals ...any) { l.zap.Error(msg, fields(keyvals)...) }

// With implements log.WithLogger.
func (l *temporalLogger) With(keyvals ...any) log.Logger {
	return &temporalLogger{l.zap.With(fields(keyvals)...)}
}

// fields turns the SDK's alternating keys and values into zap's fields.
func fields(keyvals []any) []zap.Field {
	out := make([]zap.Field, 0, (len(keyvals)+1)/2)
	for i := 0; i < len(keyvals); i += 2 {
		if i+1 == len(keyvals) {
			out = append(out, zap.Any("extra", keyvals[i]))
			break
		}
		out = append(out, zap.Any(fmt.Sprint(keyvals[i]), keyvals[i+1]))
	}
	return out
}
