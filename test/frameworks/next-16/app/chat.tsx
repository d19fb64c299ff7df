"use client";

import dynamic from "next/dynamic";

export const Chat = dynamic(() => import("./help"), { ssr: false });
