#!/bin/bash
echo "$GREETING" > hello.txt
