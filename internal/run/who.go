package run

import "cmp"

// Who is who wished something of a run or a lot, for people: what the wish says
// of it, such as ann@desk. A plain signal may say nothing.
func Who(by string) string { return cmp.Or(by, "a person") }
