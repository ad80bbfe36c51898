"""Own data in: files of many formats to audited data sets, and other libraries' graphs."""
