FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build

FROM gcr.io/distroless/base-debian12
COPY --from=build /src/bin/starter /src/bin/worker /src/bin/agent-linux-amd64 /src/bin/agent-linux-arm64 /usr/local/bin/
ENTRYPOINT ["worker"]
