// The NATS command line client the end-to-end tests watch the bus with.
module tools

go 1.23.6

require github.com/nats-io/natscli v0.2.2
