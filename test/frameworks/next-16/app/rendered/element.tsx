"use client";

import "parley-agent/widget/react";

export const Element = () => <agent-chat server="https://chat.example.com" accent="#7c3aed" />;
