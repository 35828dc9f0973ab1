"""The same question written for other libraries; each file runs in that library's environment."""
